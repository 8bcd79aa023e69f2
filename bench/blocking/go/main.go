// SPDX-License-Identifier: MIT

// blocking: goroutines, of which some compute while others block in the kernel; see bench/blocking/office.hpp.
//
// A page that is held is resolved by a second process: while a goroutine is blocked in a page fault its processor is, and
// with one processor nothing else of this program could run.
package main

import (
	"context"
	"encoding/binary"
	"net"
	"os"
	"os/exec"
	"runtime"
	"sort"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	peer "libums/bench/common/go"
)

const (
	computers = 4
	page      = 4096
)

func check(err error, what string) {
	if err != nil {
		peer.Fail("%s: %v", what, err)
	}
}

// What blocks goroutine i for about ns.
type blocks func(i int, ns int64)

func sleeping() blocks {
	return func(_ int, ns int64) {
		length := syscall.NsecToTimespec(ns)
		_, _, errno := syscall.Syscall(syscall.SYS_NANOSLEEP, uintptr(unsafe.Pointer(&length)), 0, 0)
		if errno != 0 && errno != syscall.EINTR { // The runtime's own signals.
			check(errno, "nanosleep")
		}
	}
}

func reading(n int) blocks {
	ends := make([][2]int, n)
	due := make([]int64, n)
	for i := range ends {
		var pair [2]int
		check(syscall.Pipe2(pair[:], syscall.O_CLOEXEC), "pipe")
		ends[i] = pair
	}
	go func() {
		runtime.LockOSThread()
		for {
			time.Sleep(time.Millisecond)
			now := peer.NowNs()
			for i := range due {
				if at := atomic.LoadInt64(&due[i]); at != 0 && at <= now {
					atomic.StoreInt64(&due[i], 0)
					_, err := syscall.Write(ends[i][1], []byte{'x'})
					check(err, "write to a pipe")
				}
			}
		}
	}()
	return func(i int, ns int64) {
		var one [1]byte
		atomic.StoreInt64(&due[i], peer.NowNs()+ns)
		for {
			_, err := syscall.Read(ends[i][0], one[:])
			if err == syscall.EINTR {
				continue
			}
			check(err, "read of a pipe")
			return
		}
	}
}

const (
	sysUserfaultfd   = 323
	userModeOnly     = 1
	uffdioAPI        = 0xc018aa3f
	uffdioRegister   = 0xc020aa00
	uffdioZeropage   = 0xc020aa04
	registerMissing  = 1
	eventPagefault   = 0x12
	bytesOfAMessage  = 32
	offsetOfAddress  = 16
	helperDescriptor = 3
)

func ioctl(fd int, request uintptr, at unsafe.Pointer) error {
	if _, _, errno := syscall.Syscall(syscall.SYS_IOCTL, uintptr(fd), request, uintptr(at)); errno != 0 {
		return errno
	}
	return nil
}

func faulting(n, blockMs int) blocks {
	made, _, errno := syscall.Syscall(sysUserfaultfd, syscall.O_CLOEXEC|userModeOnly, 0, 0)
	if errno != 0 {
		check(errno, "userfaultfd")
	}
	fd := int(made)
	api := [3]uint64{0xaa, 0, 0}
	check(ioctl(fd, uffdioAPI, unsafe.Pointer(&api)), "userfaultfd")
	pages, err := syscall.Mmap(-1, 0, n*page, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_PRIVATE|syscall.MAP_ANON)
	check(err, "mmap")
	area := [4]uint64{uint64(uintptr(unsafe.Pointer(&pages[0]))), uint64(n * page), registerMissing, 0}
	check(ioctl(fd, uffdioRegister, unsafe.Pointer(&area)), "userfaultfd")

	helper := exec.Command("/proc/self/exe", "resolve_ms="+strconv.Itoa(blockMs))
	helper.ExtraFiles = []*os.File{os.NewFile(uintptr(fd), "userfaultfd")}
	helper.Stderr = os.Stderr
	helper.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	runtime.LockOSThread() // The signal is sent when this thread ends.
	check(helper.Start(), "the resolver of page faults")
	return func(i int, _ int64) {
		pages[i*page] = 1
		check(syscall.Madvise(pages[i*page:(i+1)*page], syscall.MADV_DONTNEED), "madvise")
	}
}

// The second process.
func resolve(after time.Duration) {
	var message [bytesOfAMessage]byte
	for {
		if _, err := syscall.Read(helperDescriptor, message[:]); err != nil {
			if err == syscall.EINTR || err == syscall.EAGAIN {
				continue
			}
			check(err, "read of a userfaultfd")
		}
		if message[0] != eventPagefault {
			continue
		}
		address := binary.LittleEndian.Uint64(message[offsetOfAddress:]) &^ (page - 1)
		time.AfterFunc(after, func() {
			fill := [4]uint64{address, page, 0, 0}
			_ = ioctl(helperDescriptor, uffdioZeropage, unsafe.Pointer(&fill))
		})
	}
}

func resolving(blockNs int64) blocks {
	server, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	check(err, "a name server")
	go func() {
		for {
			text := make([]byte, 512)
			n, from, err := server.ReadFromUDP(text)
			if err != nil || n < 12 {
				continue
			}
			time.AfterFunc(time.Duration(blockNs), func() {
				text[2] |= 0x80
				text[3] = text[3]&0xf0 | 3
				_, _ = server.WriteToUDP(text[:n], from)
			})
		}
	}()
	resolver := &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var one net.Dialer
		return one.DialContext(ctx, "udp4", server.LocalAddr().String())
	}}
	return func(int, int64) {
		_, _ = resolver.LookupIP(context.Background(), "ip4", "no.such.host.invalid.")
	}
}

func syncing(n int) blocks {
	files := make([]*os.File, n)
	for i := range files {
		one, err := os.CreateTemp("", "ums-bench-")
		check(err, "a file")
		check(os.Remove(one.Name()), "a file")
		files[i] = one
	}
	text := make([]byte, page)
	return func(i int, _ int64) {
		_, err := files[i].WriteAt(text, 0)
		check(err, "write")
		check(files[i].Sync(), "fsync")
	}
}

type office struct {
	blockers                      int
	blockNs, phaseNs              int64
	steps                         int
	block                         blocks
	ownLength                     bool
	beginNs, endNs                int64
	stepsDone, lastNs, blocksDone int64
	blocksBefore                  int64 // Written between phases.
	delayCount, shallSee          int64
	waitingSinceNs                int64
	lock                          sync.Mutex
	delays                        []int64
}

func (o *office) phase(sum *peer.Tally, blockers int) {
	o.blocksBefore = o.blocksDone
	o.beginNs = peer.NowNs() + o.blockNs/4
	length := o.phaseNs / 2
	if blockers != 0 {
		o.beginNs += o.blockNs
		length = o.phaseNs
	}
	o.endNs = o.beginNs + length
	o.stepsDone, o.lastNs, o.waitingSinceNs = 0, o.beginNs, 0
	o.shallSee = 0
	if blockers != 0 {
		o.shallSee = o.delayCount + 1
	}
	var all sync.WaitGroup
	all.Add(computers + blockers)
	for i := 0; i < computers; i++ {
		go func() {
			defer all.Done()
			o.computeOn()
		}()
	}
	for i := 0; i < blockers; i++ {
		go func(i int) {
			defer all.Done()
			o.blockOn(i)
		}(i)
	}
	all.Wait()
	sum.Ops += o.stepsDone
	sum.Ns += o.lastNs - o.beginNs
}

// Not before one has been seen to block.
func (o *office) isOver(now int64) bool {
	return now >= o.endNs && atomic.LoadInt64(&o.delayCount) >= o.shallSee
}

func (o *office) noteDelay(now int64) {
	if atomic.LoadInt64(&o.waitingSinceNs) == 0 {
		return
	}
	if since := atomic.SwapInt64(&o.waitingSinceNs, 0); since != 0 && now >= o.beginNs {
		o.lock.Lock()
		o.delays = append(o.delays, now-since)
		o.lock.Unlock()
		atomic.AddInt64(&o.delayCount, 1)
	}
}

func (o *office) computeOn() {
	x := uint64(1)
	for {
		o.noteDelay(peer.NowNs())
		x = peer.Compute(o.steps, x)
		now := peer.NowNs()
		if now >= o.beginNs {
			atomic.AddInt64(&o.stepsDone, 1)
		}
		if o.isOver(now) {
			for {
				last := atomic.LoadInt64(&o.lastNs)
				if last >= now || atomic.CompareAndSwapInt64(&o.lastNs, last, now) {
					return
				}
			}
		}
		runtime.Gosched()
	}
}

func (o *office) blockOn(i int) {
	length := o.blockNs * int64(i+1) / int64(o.blockers)
	for {
		runtime.Gosched() // See office.hpp.
		now := peer.NowNs()
		o.noteDelay(now)
		// One at least: where nobody moves on, one block may take longer than the phase.
		if now >= o.endNs && atomic.LoadInt64(&o.blocksDone) != o.blocksBefore {
			return
		}
		atomic.CompareAndSwapInt64(&o.waitingSinceNs, 0, now)
		if now >= o.beginNs {
			atomic.AddInt64(&o.blocksDone, 1)
		}
		o.block(i, length)
		if took := peer.NowNs() - now; o.ownLength && took < length {
			time.Sleep(time.Duration(length - took))
		}
		length = o.blockNs
	}
}

func main() {
	in := peer.Arguments()
	if after := in.Number("resolve_ms", 0, 0, 60_000); after != 0 {
		resolve(time.Duration(after) * time.Millisecond)
	}
	in.Number("processors", 1, 1, 1024)
	blockers := in.Number("fibers", 100, 1, 10_000)
	way := in.Word("way", "nanosleep", "read", "fault", "getaddrinfo", "fsync")
	blockMs := in.Number("block_ms", 200, 1, 60_000)
	phaseMs := in.Number("phase_ms", 1000, 1, 600_000)
	rounds := in.Number("rounds", 2, 1, 1000)
	in.Done()

	o := office{blockers: blockers, blockNs: int64(blockMs) * 1_000_000, phaseNs: int64(phaseMs) * 1_000_000}
	o.steps = int(10_000 * peer.StepsPerNs())
	switch way {
	case "nanosleep":
		o.block = sleeping()
	case "read":
		o.block = reading(blockers)
	case "fault":
		o.block = faulting(blockers, blockMs)
	case "getaddrinfo":
		o.block = resolving(o.blockNs)
	default:
		o.block, o.ownLength = syncing(blockers), true
	}
	var alone, beside peer.Tally
	for i := 0; i < rounds; i++ {
		o.phase(&alone, 0)
		o.phase(&beside, blockers)
	}
	sort.Slice(o.delays, func(a, b int) bool { return o.delays[a] < o.delays[b] })
	at := func(percent int) float64 { return float64(o.delays[(len(o.delays)-1)*percent/100]) / 1000 }
	rate := func(of peer.Tally) float64 { return float64(of.Ops) / float64(of.Ns) }
	var out peer.Line
	out.Add("throughput_kept", rate(beside)/rate(alone)).Add("p50_us", at(50)).Add("p99_us", at(99))
	out.Add("blocks_per_s", float64(o.blocksDone)*1e9/float64(beside.Ns)).Print()
}
