# a
// b
/* c
 d */ plugin_dir = "x" /* e */ # f
target "harvester" {
  driver = "harvester"
  /* g */
  config = { # h
    a = 1 // i
  }
} # j
