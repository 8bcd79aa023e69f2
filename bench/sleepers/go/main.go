// SPDX-License-Identifier: MIT

// sleepers: N goroutines, each sleeps a random time once, and reports how late it woke.
package main

import (
	"sort"
	"sync"
	"time"

	peer "libums/bench/common/go"
)

// As bench/common/lateness.hpp, so that all runtimes sleep the same times.
func sleepNs(index, longest uint64) int64 {
	z := (index + 1) * 0x9e3779b97f4a7c15
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9
	z = (z ^ (z >> 27)) * 0x94d049bb133111eb
	return int64((z ^ (z >> 31)) % (longest + 1))
}

func main() {
	in := peer.Arguments()
	in.Number("processors", 1, 1, 1024)
	goroutines := in.Number("fibers", 1_000_000, 1, peer.Most)
	longest := uint64(in.Number("longest_ms", 2000, 1, 100_000)) * 1_000_000
	in.Done()

	late := make([]int64, goroutines)
	cpu := peer.CPUNs()
	var all sync.WaitGroup
	all.Add(goroutines)
	for i := 0; i < goroutines; i++ {
		go func(i int) {
			length := sleepNs(uint64(i), longest)
			deadline := peer.NowNs() + length
			time.Sleep(time.Duration(length))
			late[i] = peer.NowNs() - deadline
			all.Done()
		}(i)
	}
	all.Wait()
	used := peer.CPUNs() - cpu

	sort.Slice(late, func(a, b int) bool { return late[a] < late[b] })
	if early := sort.Search(len(late), func(i int) bool { return late[i] >= 0 }); early != 0 {
		peer.Fail("%d of %d sleepers woke early, by up to %d ns", early, len(late), -late[0])
	}
	at := func(share float64) float64 { return float64(late[int(share*float64(len(late)-1))]) / 1000 }
	var out peer.Line
	out.Add("ops", goroutines).Add("cpu_us_per_op", float64(used)/1000/float64(goroutines))
	out.Add("lateness_p50_us", at(0.5)).Add("lateness_p99_us", at(0.99)).Add("lateness_max_us", at(1)).Print()
}
