scaling "web" {
  enabled = true
  max = 5
  policy {
    schedule {
      start = "0 8 * * *"
      duration = "10h"
    }
    check "c" {
      source = "prometheus"
      query = <<-EOQ
        a
          $${b}
      EOQ
      schedule {
        start = "0 8 * * *"
        end = "0 9 * * *"
      }
      strategy "pass-through" {}
    }
    target "harvester" {
      a = "b"
      max_scale_out = 5
      dry-run = true
      min = 1.50
    }
  }
}
