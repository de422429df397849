// Command generate makes a data directory by a server of an earlier version, and has
// the same server tell what is in it. Build that version, and run this in the directory
// of package upgrade, on Linux:
//
//	git worktree add /tmp/old COMMIT && (cd /tmp/old && go build -o /tmp/godwit ./cmd/godwit)
//	go run ./generate -server /tmp/godwit -name COMMIT
//
// It writes testdata/NAME.tar.gz and testdata/NAME.json.gz. Once made they stay as they
// are: a later version that changes what upgrade.Fill does takes another name.
package main

import (
	"compress/gzip"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"godwit.dev/godwit/test/upgrade"
)

func main() {
	server := flag.String("server", "", "the earlier version's binary")
	name := flag.String("name", "", "of the directory")
	to := flag.String("to", "testdata", "where to write")
	flag.Parse()
	if err := generate(*server, filepath.Join(*to, *name)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func generate(server, to string) (err error) {
	dir, err := os.MkdirTemp("", "upgrade-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	data, archive := filepath.Join(dir, "data"), to+".tar.gz"
	// The end of the first is a clean one, that of the second is none.
	if err := with(server, data, os.Interrupt, upgrade.Fill); err != nil {
		return err
	}
	if err := with(server, data, os.Kill, upgrade.Add); err != nil {
		return err
	}
	if err := upgrade.Pack(data, archive); err != nil {
		return err
	}
	var recorded upgrade.Recorded
	err = with(server, filepath.Join(dir, "copy"), os.Interrupt, func(s upgrade.Server) (err error) {
		if recorded.Asked, err = upgrade.Ask(s); err == nil {
			recorded.Used, err = upgrade.Use(s)
		}
		return err
	}, archive)
	if err != nil {
		return err
	}
	out, err := os.Create(to + ".json.gz")
	if err != nil {
		return err
	}
	z := gzip.NewWriter(out)
	return errors.Join(json.NewEncoder(z).Encode(recorded), z.Close(), out.Close())
}

// with runs a server on a directory, perhaps that of an archive, calls f, and ends it.
func with(server, data string, end os.Signal, f func(upgrade.Server) error, archive ...string) error {
	for _, a := range archive {
		if err := upgrade.Unpack(a, data); err != nil {
			return err
		}
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	addr := l.Addr().String()
	l.Close()
	cmd := exec.Command(server, upgrade.Arguments(addr, data)...)
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		return err
	}
	s := upgrade.Server{Base: "http://" + addr}
	for began := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		if resp, err := http.Get(s.Base + "/_godwit/ready"); err == nil {
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				break
			}
		} else if time.Since(began) > time.Minute {
			return errors.Join(fmt.Errorf("the server is not ready: %w", err), cmd.Process.Kill(), cmd.Wait())
		}
	}
	err = f(s)
	err = errors.Join(err, cmd.Process.Signal(end))
	_ = cmd.Wait() // it may have been killed
	return err
}
