# What HashiCorp's packages for Debian and RPM install as /etc/nomad.d/nomad.hcl, its settings
# written down anew (hashicorp/nomad:.release/linux/package/etc/nomad.d/nomad.hcl, 1.10.5).
data_dir  = "/opt/nomad/data"
bind_addr = "0.0.0.0"

server {
  enabled          = true
  bootstrap_expect = 1
}

client {
  enabled = true
  servers = ["127.0.0.1"]
}
