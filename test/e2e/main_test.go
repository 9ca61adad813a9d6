// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os"
	"testing"

	"nomad-harvester.local/test/e2e/harness"
)

func TestMain(m *testing.M) { os.Exit(harness.Run(m)) }
