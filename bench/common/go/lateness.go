// SPDX-License-Identifier: MIT

package peer

import (
	"math"
	"sort"
)

// Scramble and SleepNs are bench/common/lateness.hpp's, so that all runtimes sleep the same times.
func Scramble(index uint64) uint64 {
	z := (index + 1) * 0x9e3779b97f4a7c15
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9
	z = (z ^ (z >> 27)) * 0x94d049bb133111eb
	return z ^ (z >> 31)
}

func SleepNs(index, longest uint64) int64 { return int64(Scramble(index) % (longest + 1)) }

// AddLateness adds the figures for late (woken minus deadline, in ns), and fails if anybody woke early.
func (l *Line) AddLateness(late []int64) *Line {
	sort.Slice(late, func(a, b int) bool { return late[a] < late[b] })
	if early := sort.Search(len(late), func(i int) bool { return late[i] >= 0 }); early != 0 {
		Fail("%d of %d sleepers woke early, by up to %d ns", early, len(late), -late[0])
	}
	at := func(share float64) float64 { return float64(late[int(share*float64(len(late)-1))]) / 1000 }
	return l.Add("lateness_p50_us", at(0.5)).Add("lateness_p99_us", at(0.99)).Add("lateness_max_us", at(1))
}

// AddQuantileUs adds the nearest rank of ns, which it sorts; see bench/common/lateness.hpp.
func (l *Line) AddQuantileUs(key string, ns []int64, part float64) *Line {
	sort.Slice(ns, func(a, b int) bool { return ns[a] < ns[b] })
	return l.Add(key, float64(ns[int(math.Ceil(part*float64(len(ns))))-1])/1000)
}
