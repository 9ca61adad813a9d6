plugin_dir = "x"

# c
target "harvester" {
  driver = "harvester"
  config = {
    a = <<EOF
b
  c
EOF
    b = "d"
  }
}
