"plugin_dir" = "x"
