// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"debug/elf"
	"testing"
)

// scripts/check-static starts the executable in an empty root; this test checks why that works.
func TestP5TheExecutableNeedsNeitherInterpreterNorSharedLibraries(t *testing.T) {
	binary := must1(elf.Open(realPlugin))(t)
	defer binary.Close()
	for _, segment := range binary.Progs {
		if segment.Type == elf.PT_INTERP {
			t.Error("it names a program interpreter")
		}
	}
	libraries := must1(binary.ImportedLibraries())(t)
	if len(libraries) > 0 {
		t.Errorf("it needs shared libraries: %v", libraries)
	}
}
