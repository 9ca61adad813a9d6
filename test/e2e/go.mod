module nomad-harvester.local/test/e2e

go 1.26

require (
	gopkg.in/yaml.v3 v3.0.1
	nomad-harvester.local/test/prometheus v0.0.0
)

replace nomad-harvester.local/test/prometheus => ../prometheus
