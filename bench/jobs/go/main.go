// SPDX-License-Identifier: MIT

// jobs: goroutines. The workload is that of bench/jobs/jobs.hpp. Go knows neither priorities nor deadlines.
package main

import (
	"math"
	"runtime"
	"sync"
	"time"

	peer "libums/bench/common/go"
)

const pieceNs = 50_000

type dice uint64

func newDice(seed uint64) dice { return dice(seed << 32) }

func (d *dice) roll() float64 {
	x := peer.Scramble(uint64(*d))
	*d++
	return (float64(x>>32) + 0.5) / 4294967296
}

type source struct {
	gapNs, workNs, lateAfterNs float64
	isRandom, isShort          bool
	tookNs                     []int64
}

func requests(processors, fibers int) []source {
	long := fibers / 10
	if long == 0 {
		long = 1
	}
	gap := func(n int, workNs, load float64) float64 { return float64(n) * workNs / (load * float64(processors)) }
	all := make([]source, fibers)
	for i := range all {
		if i < fibers-long {
			all[i] = source{gapNs: gap(fibers-long, 20e3, 0.2), isRandom: true, isShort: true, workNs: 20e3, lateAfterNs: 1e6}
		} else {
			all[i] = source{gapNs: gap(long, 2e6, 0.5), isRandom: true, workNs: 2e6, lateAfterNs: 100e6}
		}
	}
	return all
}

func periodic(processors, fibers int) []source {
	random := newDice(7)
	parts := make([]float64, fibers)
	sum := 0.0
	for i := range parts {
		parts[i] = 0.5 + random.roll()
		sum += parts[i]
	}
	all := make([]source, fibers)
	for i := range all {
		place := (float64(i) + random.roll()) / float64(fibers)
		period := 5e6 * math.Pow(10, place)
		all[i] = source{gapNs: period, isShort: i < fibers/2, lateAfterNs: period,
			workNs: 0.9 * float64(processors) * parts[i] / sum * period}
	}
	return all
}

func (s *source) serve(beginNs int64, lengthNs, stepsPerNs float64, seed uint64) {
	random := newDice(seed)
	gap := func() float64 {
		if s.isRandom {
			return -math.Log(random.roll()) * s.gapNs
		}
		return s.gapNs
	}
	pieces := int(math.Ceil(s.workNs / pieceNs))
	steps := int(s.workNs*stepsPerNs+0.5) / pieces
	x := seed
	for at := random.roll() * s.gapNs; at < lengthNs; at += gap() {
		release := beginNs + int64(at)
		time.Sleep(time.Duration(release - peer.NowNs()))
		for i := 0; i < pieces; i++ {
			if i != 0 {
				runtime.Gosched()
			}
			x = peer.Compute(steps, x)
		}
		s.tookNs = append(s.tookNs, peer.NowNs()-release)
	}
}

func main() {
	in := peer.Arguments()
	processors := in.Number("processors", 1, 1, 1024)
	fibers := in.Number("fibers", 20, 2, peer.Most)
	minMs := in.Number("min_ms", 1000, 1, peer.Most)
	isPeriodic := in.Word("way", "requests", "deadlines") == "deadlines"
	in.Done()

	all := requests(processors, fibers)
	if isPeriodic {
		all = periodic(processors, fibers)
	}
	stepsPerNs := peer.StepsPerNs()
	begin := peer.NowNs() + 1_000_000
	var ended sync.WaitGroup
	for i := range all {
		ended.Add(1)
		go func(i int) {
			defer ended.Done()
			all[i].serve(begin, float64(minMs)*1e6, stepsPerNs, uint64(i+1))
		}(i)
	}
	ended.Wait()

	var short, long []int64
	late := 0
	for i := range all {
		if all[i].isShort {
			short = append(short, all[i].tookNs...)
		} else {
			long = append(long, all[i].tookNs...)
		}
		for _, ns := range all[i].tookNs {
			if float64(ns) > all[i].lateAfterNs {
				late++
			}
		}
	}
	if len(short) == 0 || len(long) == 0 {
		peer.Fail("min_ms is too short for a job of each kind")
	}
	var out peer.Line
	out.AddQuantileUs("short_p50_us", short, 0.5).AddQuantileUs("short_p99_us", short, 0.99)
	out.AddQuantileUs("long_p99_us", long, 0.99).Add("late", float64(late)/float64(len(short)+len(long))).Print()
}
