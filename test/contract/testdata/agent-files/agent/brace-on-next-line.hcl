target "harvester"
{
  driver = "harvester"
}
