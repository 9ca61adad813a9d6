module nomad-harvester.local/test/prometheus

go 1.26
