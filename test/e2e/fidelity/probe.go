// SPDX-License-Identifier: Apache-2.0

// Package fidelity asks a Kubernetes API and a Nomad API a table of questions and
// writes down what the plugin's code depends on: status, reason, and the fields
// that it reads. The answers of the real servers are kept beside the table; the
// same questions to the simulator must get the same answers.
package fidelity

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"text/template"
	"time"
)

// Target is a pair of servers to ask.
type Target struct {
	KubeURL, KubeToken   string
	NomadURL, NomadToken string
	Namespace            string
	HTTP                 *http.Client

	// ForbiddenToken is a Kubernetes token that may not list services; empty if the
	// server knows no rights.
	ForbiddenToken string
	// Compact makes the Kubernetes API forget old revisions; nil if it cannot.
	Compact func() error
	// RunsJobs tells whether Nomad takes jobs.
	RunsJobs bool
}

// API is one of the two servers.
type API int

// The servers.
const (
	Kube API = iota
	Nomad
)

// Step is one question. Path and Body are templates over what earlier steps kept.
type Step struct {
	Name         string
	API          API
	Method, Path string
	Type         string // content type, JSON if empty
	Body         string
	Accept       string   // media type, JSON if empty
	Token        string   // instead of the target's; "none" for no token at all
	Exact        []string // JSON pointers whose values must be alike
	Shape        []string // JSON pointers whose kinds must be alike
	Headers      []string
	KeepHeader   string            // its value is kept …
	SameHeader   string            // … and compared with that of this step
	Keep         map[string]string // name → JSON pointer
	Until        map[string]any    // ask again until these pointers have these values
	Reread       string            // a path: before each attempt, its object's resourceVersion becomes "rv"
	UntilStatus  int               // ask again until the status is this one
	Timed        bool              // record whether the answer took three seconds
	Needs        func(Target) bool // leave the step out where this is false
	Before       func(Target) error
}

// Answer is what one step got.
type Answer struct {
	Step    string            `json:"step"`
	Status  int               `json:"status,omitempty"` // 200 if 0
	Type    string            `json:"type,omitempty"`   // JSON if empty
	Exact   map[string]any    `json:"exact,omitempty"`
	Shape   map[string]string `json:"shape,omitempty"`
	Headers map[string]string `json:"headers,omitempty"`
	Text    string            `json:"text,omitempty"` // of an answer that is not JSON
	Waited  string            `json:"waited,omitempty"`
}

const timeout = 90 * time.Second

// Ask goes through the steps in order. A step that gets no answer at all ends it.
func Ask(target Target, state map[string]string, steps []Step) ([]Answer, error) {
	var answers []Answer
	for _, step := range steps {
		if step.Needs != nil && !step.Needs(target) {
			continue
		}
		if step.Before != nil {
			if err := step.Before(target); err != nil {
				return answers, fmt.Errorf("%s: %w", step.Name, err)
			}
		}
		answer, err := askUntil(target, state, step)
		if err != nil {
			return answers, fmt.Errorf("%s: %w", step.Name, err)
		}
		answers = append(answers, answer)
	}
	return answers, nil
}

func askUntil(target Target, state map[string]string, step Step) (Answer, error) {
	deadline := time.Now().Add(timeout)
	for {
		if step.Reread != "" {
			_, current, err := ask(target, state, Step{Name: step.Name, Method: "GET", Path: step.Reread})
			if err != nil {
				return Answer{}, err
			}
			state["rv"] = fmt.Sprint(lookUp(current, "/metadata/resourceVersion"))
		}
		answer, document, err := ask(target, state, step)
		if err != nil {
			return answer, err
		}
		if settled(step, answer, document) {
			for name, pointer := range step.Keep {
				state[name] = fmt.Sprint(lookUp(document, expand(pointer, state)))
			}
			return answer, nil
		}
		if time.Now().After(deadline) {
			return answer, fmt.Errorf("not %v %v within %v: %d %v", step.UntilStatus, step.Until, timeout, answer.Status, answer.Exact)
		}
		time.Sleep(250 * time.Millisecond)
	}
}

func settled(step Step, answer Answer, document any) bool {
	if step.UntilStatus != 0 && cmp.Or(answer.Status, http.StatusOK) != step.UntilStatus {
		return false
	}
	for pointer, want := range step.Until {
		if lookUp(document, pointer) != want {
			return false
		}
	}
	return true
}

func ask(target Target, state map[string]string, step Step) (Answer, any, error) {
	base, token, header := target.KubeURL, target.KubeToken, "Authorization"
	if step.API == Nomad {
		base, token, header = target.NomadURL, target.NomadToken, "X-Nomad-Token"
	}
	if step.Token != "" {
		token = expand(step.Token, state)
	}
	request, err := http.NewRequest(step.Method, base+expand(step.Path, state), strings.NewReader(expand(step.Body, state)))
	if err != nil {
		return Answer{}, nil, err
	}
	if token != "" && token != "none" {
		if step.API == Kube {
			token = "Bearer " + token
		}
		request.Header.Set(header, token)
	}
	request.Header.Set("Accept", cmp.Or(step.Accept, "application/json"))
	request.Header.Set("Content-Type", "application/json")
	if step.Type != "" {
		request.Header.Set("Content-Type", step.Type)
	}
	began := time.Now()
	response, err := target.HTTP.Do(request)
	if err != nil {
		return Answer{}, nil, err
	}
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	if err != nil {
		return Answer{}, nil, err
	}
	return read(state, step, response, data, time.Since(began))
}

func read(state map[string]string, step Step, response *http.Response, data []byte, took time.Duration) (Answer, any, error) {
	answer := Answer{Step: step.Name}
	if response.StatusCode != http.StatusOK {
		answer.Status = response.StatusCode
	}
	switch kind, _, _ := strings.Cut(response.Header.Get("Content-Type"), ";"); kind {
	case "application/json":
	case "", "text/plain": // which Nomad 1.6 does not say
		answer.Type = "text"
	default:
		answer.Type = kind
	}
	if step.Timed {
		answer.Waited = "less than three seconds"
		// Far from both: the question that need not wait could wait half a minute.
		if took >= 2900*time.Millisecond {
			answer.Waited = "three seconds or more"
		}
	}
	for _, name := range step.Headers {
		if answer.Headers == nil {
			answer.Headers = map[string]string{}
		}
		answer.Headers[name] = plain(response.Header.Get(name), state)
	}
	if step.KeepHeader != "" {
		state[step.KeepHeader] = response.Header.Get(step.KeepHeader)
	}
	if name := step.SameHeader; name != "" {
		answer.Headers = map[string]string{name: "as before"}
		if value := response.Header.Get(name); value == "" || value != state[name] {
			answer.Headers[name] = "not as before"
		}
	}
	var document any
	if err := json.Unmarshal(data, &document); err != nil {
		answer.Text = plain(strings.TrimSpace(string(data)), state)
		return answer, nil, nil
	}
	exact, usual := step.Exact, map[string]any{}
	if response.StatusCode >= 400 && step.API == Kube {
		exact = append([]string{"/kind", "/status", "/reason", "/message", "/code", "/details"}, exact...)
		// What a metav1.Status has unless the answer tells otherwise.
		usual = map[string]any{"/kind": "Status", "/status": "Failure", "/code": float64(response.StatusCode), "/details": absent}
	}
	for _, pointer := range exact {
		if answer.Exact == nil {
			answer.Exact = map[string]any{}
		}
		value := plainValue(lookUp(document, expand(pointer, state)), state)
		if want, found := usual[pointer]; !found || value != want {
			answer.Exact[pointer] = value
		}
	}
	for _, pointer := range step.Shape {
		if answer.Shape == nil {
			answer.Shape = map[string]string{}
		}
		answer.Shape[pointer] = shape(lookUp(document, expand(pointer, state)))
	}
	return answer, document, nil
}

// absent stands for a field that is not there, as against one that is null.
const absent = "absent"

// lookUp follows a JSON pointer (RFC 6901).
func lookUp(document any, pointer string) any {
	if pointer == "" {
		return document
	}
	for _, key := range strings.Split(strings.TrimPrefix(pointer, "/"), "/") {
		key = strings.NewReplacer("~1", "/", "~0", "~").Replace(key)
		switch value := document.(type) {
		case map[string]any:
			next, found := value[key]
			if !found {
				return absent
			}
			document = next
		case []any:
			index, err := strconv.Atoi(key)
			if err != nil || index >= len(value) {
				return absent
			}
			document = value[index]
		default:
			return absent
		}
	}
	return document
}

var (
	uuidText   = regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$`)
	digitsText = regexp.MustCompile(`^[0-9]+$`)
	timeText   = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$`)

	uuidsWithin   = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
	numbersWithin = regexp.MustCompile(`\b\d{2,}\b`)
)

// shape tells what kind of value the plugin's decoder gets.
func shape(value any) string {
	switch value := value.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case float64:
		if value == 0 {
			return "zero"
		}
		return "number"
	case string:
		switch {
		case value == absent:
			return absent
		case value == "":
			return "empty string"
		case uuidText.MatchString(value):
			return "uuid"
		case digitsText.MatchString(value):
			return "digits"
		case timeText.MatchString(value):
			// Whole seconds and fractions are different formats to a parser.
			if strings.Contains(value, ".") {
				return "time with a fraction"
			}
			return "time"
		}
		return "string"
	case []any:
		if len(value) == 0 {
			return "empty list"
		}
		return "list"
	case map[string]any:
		return "object"
	}
	return fmt.Sprintf("%T", value)
}

// plainValue takes out of a value what differs from run to run.
func plainValue(value any, state map[string]string) any {
	switch value := value.(type) {
	case string:
		return plain(value, state)
	case map[string]any:
		out := map[string]any{}
		for key, inner := range value {
			out[key] = plainValue(inner, state)
		}
		return out
	case []any:
		out := make([]any, len(value))
		for i, inner := range value {
			out[i] = plainValue(inner, state)
		}
		return out
	}
	return value
}

func plain(text string, state map[string]string) string {
	text = strings.ReplaceAll(text, state["name"], "<name>")
	if ns := state["ns"]; ns != "" {
		text = strings.ReplaceAll(text, ns, "nomad")
	}
	text = uuidsWithin.ReplaceAllString(text, "<uuid>")
	if strings.ContainsAny(text, " ") {
		text = numbersWithin.ReplaceAllString(text, "<n>")
	}
	return text
}

func expand(text string, state map[string]string) string {
	if !strings.Contains(text, "{{") {
		return text
	}
	parsed, err := template.New("").Option("missingkey=error").Parse(text)
	if err != nil {
		panic(err) // the table is part of the program
	}
	var out bytes.Buffer
	if err := parsed.Execute(&out, state); err != nil {
		panic(err)
	}
	return out.String()
}

// Differences tells where two servers' answers to the same steps differ. A step
// that one of them was never asked is none; the wording of a metav1.Status, which
// changes from release to release, is one only if wording says so, and so are the
// details with which a webhook refuses.
func Differences(want, got []Answer, wording bool) []string {
	byName := map[string]Answer{}
	for _, answer := range want {
		byName[answer.Step] = answer
	}
	var differences []string
	for _, answer := range got {
		expected, known := byName[answer.Step]
		if !known {
			differences = append(differences, fmt.Sprintf("%s: no answer is known", answer.Step))
			continue
		}
		byWebhook := strings.HasPrefix(fmt.Sprint(expected.Exact["/message"]), "admission webhook ")
		is, was := encode(answer, wording, byWebhook), encode(expected, wording, byWebhook)
		if is != was {
			differences = append(differences, fmt.Sprintf("%s:\n  got  %s\n  want %s", answer.Step, is, was))
		}
	}
	return differences
}

func encode(answer Answer, wording, byWebhook bool) string {
	if !wording && answer.Status >= 400 {
		answer.Exact = maps.Clone(answer.Exact)
		delete(answer.Exact, "/message")
		if byWebhook {
			delete(answer.Exact, "/details")
		}
	}
	data, err := json.Marshal(answer)
	if err != nil {
		return err.Error()
	}
	return string(data)
}
