scaling "web" {
  enabled = true
  max = 5
  policy {
    target "harvester" {
      user_data = <<-EOT
        #cloud-config
        runcmd:
          - [sh, -c, "echo $HOME $${HOME} 100%"]

          - "\n {{vm_name}} <% %>"
      EOT
    }
  }
}
