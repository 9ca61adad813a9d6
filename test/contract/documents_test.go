// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A command line of a document.
type documented struct {
	place string // file:line
	words []string
	block int // number of the block that it is in; 0: in a sentence
}

// A block of commands in a document.
type codeBlock struct {
	place, text string
	world       []string // options of the last "harvester dev --simulate" before it
}

var (
	comment      = regexp.MustCompile(`(^|[ \t])#.*`)
	continuation = regexp.MustCompile(`\\\n\s*`)
	assignment   = regexp.MustCompile(`(?m)^(?:export )?([A-Z]+)="([^"]*)"`)
	inSentence   = regexp.MustCompile("`((?:nomad-harvester|scripts/[a-z0-9.-]+)(?:\\s[^`]*)?)`")
	toScript     = regexp.MustCompile(`^(?:[A-Z]+=\S+ )?(scripts/[a-z0-9.-]+)`)
	simulation   = regexp.MustCompile(`(?m)^nomad-harvester dev --simulate((?: --(?:fail|kill-after) \S+)*)`)
	toHarvester  = regexp.MustCompile(`^(?:nomad-|build/static/)harvester( |$)`)
)

func documents(t *testing.T) []string {
	t.Helper()
	var files []string
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/adr/*.md", "test/e2e/*.md"} {
		found := must1(filepath.Glob(filepath.Join("..", "..", pattern)))(t)
		files = append(files, found...)
	}
	return files
}

// shellBlocks returns the blocks of a document that are for a shell, and the rest of its text.
func shellBlocks(t *testing.T, file string) (blocks []codeBlock, prose string) {
	t.Helper()
	data := must1(os.ReadFile(file))(t)
	fence := ""
	for i, line := range strings.Split(string(data), "\n") {
		switch {
		case strings.HasPrefix(line, "```") && fence == "":
			if fence = line; fence == "```sh" {
				blocks = append(blocks, codeBlock{place: fmt.Sprintf("%s:%d", file, i+1)})
			}
		case strings.HasPrefix(line, "```"):
			fence = ""
		case fence == "```sh":
			blocks[len(blocks)-1].text += line + "\n"
		case fence == "":
			prose += line
		}
		if fence != "```sh" {
			prose += "\n"
		}
	}
	return blocks, prose
}

// commandsOf returns the commands of a document that are this project's, with the variables that the
// document sets in their place.
func commandsOf(t *testing.T, file string) []documented {
	t.Helper()
	blocks, prose := shellBlocks(t, file)
	var commands []documented
	variables := map[string]string{}
	for i, block := range blocks {
		text := continuation.ReplaceAllString(block.text, " ")
		for _, set := range assignment.FindAllStringSubmatch(text, -1) {
			variables[set[1]] = set[2]
		}
		for _, line := range strings.Split(text, "\n") {
			line = comment.ReplaceAllString(line, "")
			for name, value := range variables {
				line = strings.ReplaceAll(line, "$"+name, value)
			}
			for _, part := range strings.Split(line, "&&") {
				if part = strings.TrimSpace(part); toScript.MatchString(part) || toHarvester.MatchString(part) {
					commands = append(commands, documented{block.place, strings.Fields(part), i + 1})
				}
			}
		}
	}
	for _, found := range inSentence.FindAllStringSubmatch(prose, -1) {
		line, _, _ := strings.Cut(found[1], "|")
		commands = append(commands, documented{file, strings.Fields(line), 0})
	}
	return commands
}

// helpOf returns what the executable prints for one command, and false if it has no such command.
func helpOf(t *testing.T, name string) (string, bool) {
	t.Helper()
	arguments := []string{"help"}
	if name != "" {
		arguments = append(arguments, name)
	}
	cmd := command(t, realPlugin, arguments...)
	cmd.Env = []string{}
	out, err := cmd.Output()
	return string(out), err == nil && strings.Contains(string(out), "Usage: harvester "+name)
}

func hasOption(help, option string) bool {
	return regexp.MustCompile(`(^|[\s,[|])` + regexp.QuoteMeta(option) + `($|[\s,\]|=)])`).MatchString(help)
}

func TestEveryCommandInTheDocumentsExistsWithItsOptions(t *testing.T) {
	checked := map[string]int{}
	help := map[string]string{}
	for _, file := range documents(t) {
		for _, found := range commandsOf(t, file) {
			words := found.words
			if match := toScript.FindStringSubmatch(strings.Join(words, " ")); match != nil {
				script := filepath.Join("..", "..", match[1])
				text, err := os.ReadFile(script)
				if err != nil {
					t.Errorf("%s: %s does not exist", found.place, match[1])
				}
				top, _, _ := strings.Cut(string(text), "\n\n")
				for _, word := range words[1:] {
					if option, _, _ := strings.Cut(strings.Trim(word, "[]"), "="); strings.HasPrefix(option, "--") && !hasOption(top, option) {
						t.Errorf("%s: %s has no option %s", found.place, match[1], option)
					}
				}
				checked["scripts"]++
				continue
			}
			if len(words) == 1 {
				continue
			}
			name := words[1]
			if strings.HasPrefix(name, "-") || name == "help" {
				continue
			}
			if _, known := help[name]; !known {
				text, exists := helpOf(t, name)
				if !exists {
					t.Errorf("%s: %q: harvester has no command %q", found.place, words, name)
				}
				help[name] = text
			}
			for _, word := range words[2:] {
				option, _, _ := strings.Cut(strings.Trim(word, "[]`.,;)"), "=")
				if regexp.MustCompile(`^--?[a-z]`).MatchString(option) && !hasOption(help[name], option) {
					t.Errorf("%s: harvester %s has no option %s", found.place, name, option)
				}
			}
			checked[name]++
		}
	}
	for _, name := range []string{"scripts", "check", "plan", "scale", "status", "demand", "why", "render", "pause", "resume", "adopt", "gc", "dev", "init"} {
		if checked[name] == 0 {
			t.Errorf("no document uses %s: %v", name, checked)
		}
	}
}

// Each block whose commands are the executable's runs as it stands, in a simulated world of its own,
// with the example files beside it. What asks is told yes; the commands of Kubernetes and Nomad do nothing here.
func TestTheCommandsInTheDocumentsWork(t *testing.T) {
	ran := 0
	for _, file := range documents(t) {
		blocks, _ := shellBlocks(t, file)
		var world []string
		for _, block := range blocks {
			if started := simulation.FindStringSubmatch(block.text); started != nil {
				world = strings.Fields(started[1])
			}
			block.world = world
			if !regexp.MustCompile(`(?m)^(nomad-|build/static/)harvester `).MatchString(block.text) || strings.Contains(block.text, "harvester dev") {
				continue
			}
			ran++
			t.Run(filepath.Base(file)+" "+block.place[strings.LastIndex(block.place, ":")+1:], func(t *testing.T) {
				t.Parallel()
				runBlock(t, block.text, block.world)
			})
		}
	}
	if ran < 12 {
		t.Errorf("%d blocks ran, want 12 at least", ran)
	}
}

// The examples of each help run as those of the documents do, one after the other.
func TestTheExamplesOfEachHelpWork(t *testing.T) {
	t.Parallel()
	all, _ := helpOf(t, "")
	_, all, _ = strings.Cut(all, "Subcommands:\n")
	all, _, _ = strings.Cut(all, "\n\n")
	commands := regexp.MustCompile(`(?m)^  ([a-z]+) `).FindAllStringSubmatch(all, -1)
	if len(commands) < 10 {
		t.Fatalf("the help has %d commands", len(commands))
	}
	for _, command := range commands {
		name := command[1]
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			help, _ := helpOf(t, name)
			_, rest, found := strings.Cut(help, "\nExamples:\n")
			examples, _, _ := strings.Cut(rest, "\n\n")
			if !found || !strings.Contains(examples, "harvester "+name) {
				t.Fatalf("the help of %s has no example:\n%s", name, help)
			}
			runBlock(t, strings.ReplaceAll(examples, "  harvester", "harvester")+"\n", nil)
		})
	}
}

// What the shell takes for the commands.
const standIns = `
simulate() { # until it serves
  rm -f said; mkfifo said
  TMPDIR=$PWD "$HARVESTER_BINARY" "$@" >said 2>dev.err &
  while read -r word rest; do [ "$word" = listening ] && kill $!; done <said
  wait $!
}
harvester() {
  case $1 in
    scale) shift; scaled "$@" ;;
    gc) "$HARVESTER_BINARY" "$@" --yes ;;
    status) # 3: a paused pool, or one whose process was just killed; 4: one that was never scaled. None has a history
      "$HARVESTER_BINARY" "$@" 2>status.err || case $? in 3 | 4) ;; *) grep "has no history" status.err >&2 ;; esac ;;
    evacuate) "$HARVESTER_BINARY" "$@" 2>evacuate.err || grep -q "there is no host\|is not cordoned" evacuate.err ;; # kubectl does nothing here
    adopt) "$HARVESTER_BINARY" "$@" 2>adopt.err || grep -q "no VM and no Lease" adopt.err ;; # likewise
    dev) simulate "$@" ;;
    *) "$HARVESTER_BINARY" "$@" ;;
  esac
}
kubectl() { :; }
man() { cat >/dev/null; }
nomad() { :; }
autoscaler() { :; }
scaled() { "$HARVESTER_BINARY" scale "$@" --yes; }
`

// How "harvester scale" ends in a simulation of that option: it fails, or is killed once.
var endsOfScale = map[string]string{
	"--fail": `scaled() { ! "$HARVESTER_BINARY" scale "$@" --yes; }
`,
	"--kill-after": `scaled() {
  if [ -e killed ]; then "$HARVESTER_BINARY" scale "$@" --yes; return; fi
  code=0; "$HARVESTER_BINARY" scale "$@" --yes || code=$?
  touch killed; [ "$code" = 137 ]
}
`}

func runBlock(t *testing.T, text string, world []string) {
	t.Helper()
	dir := t.TempDir()
	harvester, nomad, pasted := simulatedWorld(t, world...)
	start := standIns
	if len(world) > 0 {
		start += endsOfScale[world[0]]
	}
	metrics := httptest.NewServer(http.HandlerFunc(oneSample))
	t.Cleanup(metrics.Close)
	write := func(name, content string, mode os.FileMode) {
		path := filepath.Join(dir, name)
		must(t, os.MkdirAll(filepath.Dir(path), 0o700))
		must(t, os.WriteFile(path, []byte(content), mode))
	}
	example := func(name string, changes ...string) string {
		data := must1(os.ReadFile(filepath.Join("..", "..", "examples", name)))(t)
		content := strings.ReplaceAll(string(data), "/etc/nomad-autoscaler", dir)
		for i := 0; i < len(changes); i += 2 {
			if strings.Count(content, changes[i]) != 1 {
				t.Fatalf("%s has %q %d times", name, changes[i], strings.Count(content, changes[i]))
			}
		}
		return strings.NewReplacer(changes...).Replace(content)
	}
	write("agent.hcl", example("agent.hcl", "https://10.0.0.10:6443", harvester, "http://127.0.0.1:4646", nomad,
		"http://127.0.0.1:9090", metrics.URL, `    harvester_ca_cert = "`+dir+"/harvester-ca.pem\"\n", ""), 0o600)
	write("harvester.token", tokenOf(t, "HARVESTER", pasted), 0o600)
	write("cloud-init.yaml", example("cloud-init.yaml"), 0o600)
	// The simulated Harvester has neither the network nor the key pair of the example, and here it acts.
	policy := example("policy.hcl", "default/vlan10", "default/vlan100", `      ssh_keys       = "default/operators"`+"\n", "",
		`dry-run = "true"`, `dry-run = "false"`)
	for _, name := range []string{"policy.hcl", "web.hcl", "batch.hcl", "policies/policy.hcl"} {
		write(name, policy, 0o600)
	}
	write("policies/web.hcl", strings.NewReplacer(`scaling "batch-workers"`, `scaling "web-workers"`,
		`node_group_name = "batch"`, `node_group_name = "web"`).Replace(policy), 0o600)
	write("harvester.kubeconfig", fmt.Sprintf(`{apiVersion: v1, kind: Config, current-context: c,
clusters: [{name: c, cluster: {server: %q}}], users: [{name: u, user: {token: %q}}], contexts: [{name: c, context: {cluster: c, user: u}}]}`,
		harvester, tokenOf(t, "HARVESTER", pasted)), 0o600)
	// It is for an empty directory.
	text = strings.ReplaceAll(text, "--dir /etc/nomad-autoscaler", "--dir written")
	text = strings.ReplaceAll(text, " --yes", "") // the function says it
	// A shell's function has no hyphen in its name.
	text = strings.NewReplacer("build/static/harvester", "harvester", "nomad-harvester ", "harvester ", "nomad-autoscaler ", "autoscaler ").Replace(text)
	text = strings.ReplaceAll(text, "/etc/nomad-autoscaler", dir)
	text = strings.ReplaceAll(text, "NOMAD_TOKEN=SECRET_ID", "NOMAD_TOKEN="+tokenOf(t, "NOMAD", pasted))
	text = regexp.MustCompile(`20\d\d-\d\d-\d\dT[0-9:]+Z`).ReplaceAllString(text, time.Now().Add(time.Hour).UTC().Format(time.RFC3339))
	if strings.Contains(text, "$POOL") || strings.Contains(text, "harvester init") {
		text = pasted + text
	}
	for _, address := range []string{harvester, nomad} {
		text = strings.Replace(text, "=URL", "="+address, 1)
	}
	cmd := patientCommand(t, "/bin/sh", "-e", "-x")
	cmd.Dir = dir
	cmd.Env = []string{"HARVESTER_BINARY=" + realPlugin, "NOMAD_HARVESTER_AGENT_CONFIG=agent.hcl"}
	cmd.Stdin = strings.NewReader(start + text)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s\n%s", err, text, out)
	}
}

// tokenOf is that of a system in the lines that "harvester dev --simulate" prints to be pasted.
func tokenOf(t *testing.T, system, pasted string) string {
	t.Helper()
	found := regexp.MustCompile(` ` + system + `_TOKEN=(\S+)`).FindStringSubmatch(pasted)
	if found == nil {
		t.Fatalf("no token in %s", pasted)
	}
	return found[1]
}

// patientCommand is one that waits for drains.
func patientCommand(t *testing.T, name string, arguments ...string) *exec.Cmd {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	t.Cleanup(cancel)
	return exec.CommandContext(ctx, name, arguments...)
}

// oneSample answers as Prometheus does to a query whose value is 1.
func oneSample(w http.ResponseWriter, r *http.Request) {
	sample := []any{time.Now().Unix(), "1"}
	data := map[string]any{"resultType": "vector", "result": []any{map[string]any{"metric": map[string]any{}, "value": sample}}}
	if strings.HasSuffix(r.URL.Path, "query_range") {
		data = map[string]any{"resultType": "matrix", "result": []any{map[string]any{"metric": map[string]any{}, "values": []any{sample}}}}
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{"status": "success", "data": data})
}

// simulatedWorld is what "harvester dev --simulate" serves until the end of the test, and the lines
// that it prints to be pasted before commands.
func simulatedWorld(t *testing.T, options ...string) (harvester, nomad, pasted string) {
	t.Helper()
	cmd := patientCommand(t, realPlugin, append([]string{"dev", "--simulate"}, options...)...)
	cmd.Env = []string{"TMPDIR=" + t.TempDir()}
	stdout := must1(cmd.StdoutPipe())(t)
	must(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		if code := exitCodeOf(cmd.Wait()); code != 0 {
			t.Errorf("harvester dev: exit code %d", code)
		}
	})
	said := map[string]string{}
	for lines := bufio.NewScanner(stdout); !strings.HasPrefix(lines.Text(), "kubectl ") && lines.Scan(); {
		name, value, _ := strings.Cut(lines.Text(), " ")
		said[name] = value
		if name == "[" || name == "export" || strings.HasPrefix(name, "POOL=") {
			pasted += lines.Text() + "\n"
		}
	}
	if said["harvester_url"] == "" || said["nomad_address"] == "" || strings.Count(pasted, "\n") != 3 {
		t.Fatalf("harvester dev said %v", said)
	}
	return said["harvester_url"], said["nomad_address"], pasted
}
