// SPDX-License-Identifier: MIT

// memory: N goroutines, all blocked on one channel.
package main

import (
	"runtime"
	"sync"
	"sync/atomic"

	peer "libums/bench/common/go"
)

func main() {
	in := peer.Arguments()
	in.Number("processors", 1, 1, 1024)
	goroutines := in.Number("fibers", 100_000, 1, peer.Most)
	in.Done()

	release := make(chan struct{})
	var arrived int64
	var all sync.WaitGroup
	all.Add(goroutines)
	rss, pte, begin := peer.StatusBytes("VmRSS"), peer.StatusBytes("VmPTE"), peer.NowNs()
	for i := 0; i < goroutines; i++ {
		go func() {
			atomic.AddInt64(&arrived, 1)
			<-release
			all.Done()
		}()
	}
	for atomic.LoadInt64(&arrived) != int64(goroutines) {
		runtime.Gosched()
	}
	ns := peer.NowNs() - begin

	each := func(now, before int64) float64 { return float64(now-before) / float64(goroutines) }
	var out peer.Line
	out.Tally(peer.Tally{Ops: int64(goroutines), Ns: ns})
	out.Add("bytes_per_fiber", each(peer.StatusBytes("VmRSS"), rss))
	out.Add("pte_bytes_per_fiber", each(peer.StatusBytes("VmPTE"), pte))
	out.Add("maps_lines", peer.MapsLines())
	close(release)
	all.Wait()
	out.Add("peak_rss_bytes", peer.StatusBytes("VmHWM")).Print()
}
