plugin_dir = "x"
plugin_dir = "y"
