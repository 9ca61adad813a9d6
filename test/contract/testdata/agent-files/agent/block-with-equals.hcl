nomad = {
  address = "x"
}
