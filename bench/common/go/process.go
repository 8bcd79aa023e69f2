// SPDX-License-Identifier: MIT

package peer

import (
	"os"
	"strconv"
	"strings"
	"syscall"
)

// StatusBytes is a figure of /proc/self/status, in bytes.
func StatusBytes(key string) int64 {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		Fail("%v", err)
	}
	for _, line := range strings.Split(string(text), "\n") {
		if rest, found := cutPrefix(line, key+":"); found {
			kib, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			if err != nil {
				Fail("%v", err)
			}
			return kib * 1024
		}
	}
	Fail("/proc/self/status has no %s", key)
	return 0
}

// MapsLines counts the lines of /proc/self/maps.
func MapsLines() int {
	text, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		Fail("%v", err)
	}
	return strings.Count(string(text), "\n")
}

// CPUNs is the CPU time this process has used.
func CPUNs() int64 {
	var use syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &use); err != nil {
		Fail("%v", err)
	}
	return use.Utime.Nano() + use.Stime.Nano()
}

func cutPrefix(text, prefix string) (string, bool) {
	return strings.TrimPrefix(text, prefix), strings.HasPrefix(text, prefix)
}
