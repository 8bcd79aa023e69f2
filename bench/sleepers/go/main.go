// SPDX-License-Identifier: MIT

// sleepers: N goroutines, each sleeps a random time once, and reports how late it woke.
package main

import (
	"sync"
	"time"

	peer "libums/bench/common/go"
)

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
			length := peer.SleepNs(uint64(i), longest)
			deadline := peer.NowNs() + length
			time.Sleep(time.Duration(length))
			late[i] = peer.NowNs() - deadline
			all.Done()
		}(i)
	}
	all.Wait()
	used := peer.CPUNs() - cpu

	var out peer.Line
	out.Add("ops", goroutines).Add("cpu_us_per_op", float64(used)/1000/float64(goroutines))
	out.AddLateness(late).Print()
}
