scaling "clients" {
  enabled = true
  min     = 0
  max     = 5

  policy {
    evaluation_interval  = "2s"
    cooldown             = "1s"
    cooldown_on_scale_up = "1s"

    check "wanted" {
      source       = "prometheus"
      query        = "wanted_clients"
      query_window = "1m"

      strategy "pass-through" {}
    }

    target "harvester" {
      namespace       = "[[.Namespace]]"
      node_group_name = "clients"
      node_class      = "elastic"

      image          = "default/debian-12-nomad"
      cpu_request    = "2"
      memory_request = "4Gi"
      disk_size      = "20Gi"
      networks       = "default/vlan100"
      ssh_keys       = "default/operator"
      user_data_file = "[[.UserDataFile]]"

      node_drain_deadline    = "30s"
      node_purge             = "true"
      node_selector_strategy = "newest_create_index"
      join_timeout           = "2m"
      drain_grace            = "30s"
    }
  }
}
