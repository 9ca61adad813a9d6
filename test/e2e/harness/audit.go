package harness

import (
	"bufio"
	"os"
	"path/filepath"
	"testing"
)

func auditLog(dir string) string { return filepath.Join(dir, "audit.log") }

// Refused returns what the API server denied to ServiceAccounts, one line for
// each kind of request ("list secrets in nomad").
func (s *Stack) Refused(t testing.TB) map[string]int {
	t.Helper()
	file := must[*os.File](t, "audit log")(os.Open(auditLog(s.Dir)))
	defer file.Close()
	refused := map[string]int{}
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		event := must[Object](t, "audit log")(decodeObject(lines.Bytes()))
		if event.Int("responseStatus", "code") != 403 {
			continue
		}
		ref := event.Obj("objectRef")
		refused[event.Str("verb")+" "+ref.Str("apiGroup")+"/"+ref.Str("resource")+" in "+ref.Str("namespace")]++
	}
	check(t, "audit log", lines.Err())
	return refused
}
