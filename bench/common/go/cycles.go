// SPDX-License-Identifier: MIT

package peer

// Cycles reads the time-stamp counter.
func Cycles() int64
