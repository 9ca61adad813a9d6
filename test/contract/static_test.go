// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"debug/elf"
	"testing"
)

// scripts/check-static starts the executable in an empty root; this test checks why that works.
func TestP5TheExecutableNeedsNeitherInterpreterNorSharedLibraries(t *testing.T) {
	binary, err := elf.Open(realPlugin)
	if err != nil {
		t.Fatal(err)
	}
	defer binary.Close()
	for _, segment := range binary.Progs {
		if segment.Type == elf.PT_INTERP {
			t.Error("it names a program interpreter")
		}
	}
	libraries, err := binary.ImportedLibraries()
	if err != nil {
		t.Fatal(err)
	}
	if len(libraries) > 0 {
		t.Errorf("it needs shared libraries: %v", libraries)
	}
}
