{"plugin_dir": "x"}
