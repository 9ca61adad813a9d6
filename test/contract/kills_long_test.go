// SPDX-License-Identifier: Apache-2.0

//go:build long

package contract

// The long run: 200 kills in total.
const (
	killedPools  = 50
	killsPerPool = 4
)
