// SPDX-License-Identifier: Apache-2.0

// Command fidelity sends the requests of package fidelity to a pair of servers
// and prints where their responses differ from the real servers'.
package main

import (
	"flag"
	"fmt"
	"net/http"
	"os"
	"time"

	"nomad-harvester.local/test/e2e/fidelity"
)

func main() {
	target := fidelity.Target{HTTP: &http.Client{Timeout: time.Minute}}
	flag.StringVar(&target.KubeURL, "kube", "", "base URL of the Kubernetes API")
	flag.StringVar(&target.KubeToken, "kube-token", "", "its token")
	flag.StringVar(&target.NomadURL, "nomad", "", "base URL of the Nomad API")
	flag.StringVar(&target.NomadToken, "nomad-token", "", "its token")
	flag.StringVar(&target.Namespace, "namespace", "nomad", "namespace of the VMs")
	flag.BoolVar(&target.RunsJobs, "jobs", false, "Nomad takes jobs")
	known := flag.String("against", "testdata", "directory of the answers to compare with")
	release := flag.String("nomad-release", "1.10", "whose answers of Nomad these are: 1.6 or 1.10")
	wording := flag.Bool("wording", false, "the messages of refusals count, too")
	record := flag.String("record", "", "file to keep the answers in")
	flag.Parse()
	if err := run(target, append(fidelity.NomadAnswers(*known, *release), fidelity.HarvesterAnswers(*known)), *record, *wording); err != nil {
		fmt.Fprintln(os.Stderr, "fidelity:", err)
		os.Exit(1)
	}
}

func run(target fidelity.Target, known []string, record string, wording bool) error {
	answers, askErr := fidelity.AskAll(target)
	if record != "" {
		if err := fidelity.WriteAnswers(record, answers); err != nil {
			return err
		}
	}
	want, err := fidelity.ReadAnswers(known...)
	if err != nil {
		return err
	}
	differences := fidelity.Differences(want, answers, wording)
	for _, difference := range differences {
		fmt.Println(difference)
	}
	fmt.Printf("%d answers, %d differ\n", len(answers), len(differences))
	if askErr != nil {
		return askErr
	}
	if len(differences) > 0 {
		return fmt.Errorf("%d answers differ from the real servers'", len(differences))
	}
	return nil
}
