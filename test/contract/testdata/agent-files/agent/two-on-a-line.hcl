http { bind_port = 1, bind_address = "x" }
