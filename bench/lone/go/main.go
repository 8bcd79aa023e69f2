// SPDX-License-Identifier: MIT

// lone: goroutines. See bench/lone/lone.hpp, which this follows.
package main

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"net"
	"os"
	"sort"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	peer "libums/bench/common/go"
)

type plan struct {
	way                              string
	connections, backend             int
	windowNs, gapNs, computeNs, rate int64
}

func check(err error) {
	if err != nil {
		peer.Fail("%v", err)
	}
}

// record is what one goroutine did.
type record struct {
	ns  []uint32
	ops int64
	at  int
}

func (r *record) add(ns int64) {
	if ns > 1<<32-1 {
		ns = 1<<32 - 1
	}
	r.ns[r.at%len(r.ns)] = uint32(ns)
	r.at++
	r.ops++
}

func (r *record) kept() []uint32 {
	if r.at < len(r.ns) {
		return r.ns[:r.at]
	}
	return r.ns
}

// stage has the goroutines of this process, and the window in which they are measured.
type stage struct {
	how     plan
	room    int
	records []*record
	untilNs int64
	begin   chan struct{}
	done    sync.WaitGroup
}

func newStage(how plan, actors int) *stage {
	room := (1 << 17) / actors
	if room < 1024 {
		room = 1024
	}
	return &stage{how: how, room: room, begin: make(chan struct{})}
}

func (s *stage) newRecord() *record {
	mine := &record{ns: make([]uint32, s.room)}
	for i := range mine.ns {
		mine.ns[i] = 1
	}
	s.records = append(s.records, mine)
	return mine
}

func (s *stage) add(act func(*record)) {
	mine := s.newRecord()
	s.done.Add(1)
	go func() {
		<-s.begin
		act(mine)
		s.done.Done()
		select {}
	}()
}

func (s *stage) addForEver(act func(*record)) {
	mine := s.newRecord()
	go func() {
		for {
			act(mine)
		}
	}()
}

func (s *stage) isOver(now int64) bool { return now >= s.untilNs }

func (s *stage) run() {
	var one [1]byte
	fmt.Println("ready")
	_, err := os.Stdin.Read(one[:])
	check(err)
	beginNs := peer.NowNs()
	s.untilNs = beginNs + s.how.windowNs
	close(s.begin)
	s.done.Wait()
	ns := peer.NowNs() - beginNs

	var all []uint32
	ops := int64(0)
	for _, mine := range s.records {
		ops += mine.ops
		all = append(all, mine.kept()...)
	}
	if len(all) == 0 {
		peer.Fail("no operation ended in the window")
	}
	sort.Slice(all, func(a, b int) bool { return all[a] < all[b] })
	at := func(part float64) float64 {
		return float64(all[int(math.Ceil(part*float64(len(all))))-1]) / 1000
	}
	line := &peer.Line{}
	line.Add("ops", ops).Add("ns", ns)
	line.Add("p50_us", at(0.5)).Add("p99_us", at(0.99)).Add("p999_us", at(0.999)).Add("max_us", at(1)).Print()
	os.Stdin.Read(one[:])
	os.Exit(0)
}

// ends is one end of a connection.
type ends struct {
	in  io.Reader
	out io.Writer
}

// plain calls the kernel, past Go's poller.
type plain int

func (fd plain) Read(into []byte) (int, error)  { return syscall.Read(int(fd), into) }
func (fd plain) Write(from []byte) (int, error) { return syscall.Write(int(fd), from) }

func socketpair() [2]int {
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	check(err)
	return fds
}

func tcpPair() (net.Conn, net.Conn) {
	door, err := net.Listen("tcp", "127.0.0.1:0")
	check(err)
	defer door.Close()
	asking, err := net.Dial("tcp", door.Addr().String())
	check(err)
	answering, err := door.Accept()
	check(err)
	return asking, answering
}

func makeEnds(way string) (asking, answering ends) {
	switch way {
	case "pipe":
		there, toThere, err := os.Pipe()
		check(err)
		back, toBack, err := os.Pipe()
		check(err)
		return ends{back, toThere}, ends{there, toBack}
	case "tcp":
		a, b := tcpPair()
		return ends{a, a}, ends{b, b}
	case "blocking":
		fds := socketpair()
		return ends{plain(fds[0]), plain(fds[0])}, ends{plain(fds[1]), plain(fds[1])}
	}
	var both [2]net.Conn
	for i, fd := range socketpair() {
		file := os.NewFile(uintptr(fd), "socketpair")
		made, err := net.FileConn(file)
		check(err)
		check(file.Close())
		both[i] = made
	}
	return ends{both[0], both[0]}, ends{both[1], both[1]}
}

func receive(from io.Reader, buffer []byte) {
	if n, err := from.Read(buffer); n != 1 || err != nil {
		peer.Fail("read: %d, %v", n, err)
	}
}

func send(to io.Writer, buffer []byte) {
	if n, err := to.Write(buffer); n != 1 || err != nil {
		peer.Fail("write: %d, %v", n, err)
	}
}

func askOverDescriptors(how plan) {
	all := newStage(how, how.connections)
	isAlone := how.way == "nowait"
	for i := 0; i < how.connections; i++ {
		asking, answering := makeEnds(how.way)
		all.add(func(mine *record) {
			buffer := make([]byte, 1)
			from := asking.in
			if isAlone {
				from = answering.in
			}
			for now := peer.NowNs(); ; {
				send(asking.out, buffer)
				receive(from, buffer)
				end := peer.NowNs()
				mine.add(end - now)
				if now = end; all.isOver(now) {
					return
				}
			}
		})
		if isAlone {
			continue
		}
		go func() {
			buffer := make([]byte, 1)
			for {
				receive(answering.in, buffer)
				send(answering.out, buffer)
			}
		}()
	}
	all.run()
}

type table struct {
	lock    sync.Mutex
	moved   *sync.Cond
	isAsked bool
}

func (t *table) pass(to bool) {
	t.lock.Lock()
	t.isAsked = to
	t.moved.Signal()
	for t.isAsked == to {
		t.moved.Wait()
	}
	t.lock.Unlock()
}

func askUnderMutex(how plan) {
	const untimed = 7
	all := newStage(how, how.connections)
	for i := 0; i < how.connections; i++ {
		at := &table{}
		at.moved = sync.NewCond(&at.lock)
		all.add(func(mine *record) {
			for begin := true; begin || !all.isOver(peer.NowNs()); begin = false {
				now := peer.NowNs()
				at.pass(true)
				mine.add(peer.NowNs() - now)
				for j := 0; j < untimed; j++ {
					at.pass(true)
				}
				mine.ops += untimed
			}
		})
		go func() {
			at.lock.Lock()
			for !at.isAsked {
				at.moved.Wait()
			}
			at.lock.Unlock()
			for {
				at.pass(false)
			}
		}()
	}
	all.run()
}

func sleepUntil(at int64) {
	if wait := at - peer.NowNs(); wait > 0 {
		time.Sleep(time.Duration(wait))
	}
}

func stepsOf(ns int64) int {
	if ns == 0 {
		return 0
	}
	return int(float64(ns)*peer.StepsPerNs() + 0.5)
}

func wakeOne(how plan) {
	all := newStage(how, 1)
	asked, answered := make(chan struct{}, 1), make(chan struct{}, 1)
	sentNs := int64(0)
	steps := stepsOf(how.computeNs)
	all.addForEver(func(mine *record) {
		<-asked
		mine.add(peer.NowNs() - sentNs)
		answered <- struct{}{}
	})
	all.add(func(*record) {
		x := uint64(0)
		for at := peer.NowNs() + how.gapNs; !all.isOver(at); {
			sleepUntil(at)
			sentNs = peer.NowNs()
			asked <- struct{}{}
			x = peer.Compute(steps, x)
			<-answered
			at += how.gapNs
			if now := peer.NowNs(); at < now {
				at = now
			}
		}
	})
	all.run()
}

func wakeMany(how plan) {
	type desk struct {
		asked  chan struct{}
		isBusy atomic.Bool
		sentNs int64
	}
	all := newStage(how, 1)
	desks := make([]desk, how.connections)
	steps := stepsOf(how.computeNs)
	for i := range desks {
		at := &desks[i]
		at.asked = make(chan struct{}, 1)
		all.addForEver(func(mine *record) {
			<-at.asked
			mine.add(peer.NowNs() - at.sentNs)
			peer.Compute(steps, uint64(at.sentNs))
			at.isBusy.Store(false)
		})
	}
	all.add(func(*record) {
		const turnNs = 100_000
		begin := peer.NowNs()
		done, next := int64(0), 0
		for now := begin; !all.isOver(now); now = peer.NowNs() {
			due := (now - begin) * how.rate / 1_000_000_000
			for ; done < due; done++ {
				looked := 0
				for looked < len(desks) && desks[next].isBusy.Load() {
					next = (next + 1) % len(desks)
					looked++
				}
				if looked == len(desks) {
					break
				}
				at := &desks[next]
				next = (next + 1) % len(desks)
				at.isBusy.Store(true)
				at.sentNs = peer.NowNs()
				at.asked <- struct{}{}
			}
			done = due
			sleepUntil(now + turnNs)
		}
	})
	all.run()
}

const httpAnswer = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 13\r\n\r\nHello, world\n"

func copyBytes(to, from net.Conn) {
	buffer := make([]byte, 1024)
	for {
		n, err := from.Read(buffer)
		if err != nil {
			return
		}
		if _, err := to.Write(buffer[:n]); err != nil {
			return
		}
	}
}

func answerHTTP(of net.Conn) {
	buffer := make([]byte, 1024)
	for have := 0; have < len(buffer); {
		n, err := of.Read(buffer[have:])
		if err != nil {
			return
		}
		have += n
		if !bytes.HasSuffix(buffer[:have], []byte("\r\n\r\n")) {
			continue
		}
		if _, err := of.Write([]byte(httpAnswer)); err != nil {
			return
		}
		have = 0
	}
}

func serve(how plan) {
	kind, at := "tcp", "127.0.0.1:0"
	if how.way == "echo_unix" {
		kind, at = "unix", fmt.Sprintf("@ums-lone-%d", os.Getpid())
	}
	door, err := net.Listen(kind, at)
	check(err)
	fmt.Printf("listening on %s\n", door.Addr())
	for {
		of, err := door.Accept()
		check(err)
		switch how.way {
		case "http":
			go answerHTTP(of)
		case "proxy":
			behind, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", how.backend))
			check(err)
			go copyBytes(behind, of)
			go copyBytes(of, behind)
		default:
			go copyBytes(of, of)
		}
	}
}

func main() {
	in := peer.Arguments()
	in.Number("processors", 1, 1, 1024)
	how := plan{
		way: in.Word("way", "pipe", "unix", "tcp", "condvar", "blocking", "nowait", "tick", "ready", "flood", "echo",
			"echo_unix", "http", "proxy"),
		connections: in.Number("connections", 1, 1, 100_000),
		windowNs:    int64(in.Number("ms", 100, 1, peer.Most)) * 1_000_000,
		gapNs:       int64(in.Number("gap_us", 1000, 1, peer.Most)) * 1000,
		computeNs:   int64(in.Number("compute_ns", 0, 0, peer.Most)),
		rate:        int64(in.Number("rate", 300_000, 1, peer.Most)),
		backend:     in.Number("backend", 1, 1, 65535),
	}
	in.Done()
	switch how.way {
	case "echo", "echo_unix", "http", "proxy":
		serve(how)
	case "condvar":
		askUnderMutex(how)
	case "tick", "ready":
		wakeOne(how)
	case "flood":
		wakeMany(how)
	default:
		askOverDescriptors(how)
	}
}
