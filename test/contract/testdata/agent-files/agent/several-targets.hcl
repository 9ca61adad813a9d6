target "harvester" {
  driver = "harvester"
  args = ["-x"]
}
target "second" {
  driver = "harvester"
  config = { a = "b" }
}
target "asg" {
  driver = "aws-asg"
}
