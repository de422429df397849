package main

import (
	"encoding/binary"
	"net/http"
	"os"
	"sync"
)

// durable answers sends once their bodies are on disk.
type durable struct{ log *commitLog }

func (d durable) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	action, in, err := decode(r)
	if err != nil {
		refuse(w, "SerializationException", err.Error())
		return
	}
	switch action {
	case "CreateQueue":
		answer(w, http.StatusOK, map[string]string{"QueueUrl": queueURL(r, in.QueueName)})
	case "DeleteQueue":
		answer(w, http.StatusOK, struct{}{})
	case "SendMessage":
		out := sent{MD5OfMessageBody: digest(in.MessageBody), MessageId: fixedID}
		if err = d.log.commit(in.MessageBody); err == nil {
			answer(w, http.StatusOK, out)
		}
	case "SendMessageBatch":
		var out batchResult
		bodies := make([]string, 0, len(in.Entries))
		for _, e := range in.Entries {
			out.Successful = append(out.Successful, sentEntry{e.Id, digest(e.MessageBody), fixedID})
			bodies = append(bodies, e.MessageBody)
		}
		if err = d.log.commit(bodies...); err == nil {
			answer(w, http.StatusOK, out)
		}
	default:
		refuse(w, "InvalidAction", "the durable reference only takes sends")
	}
	if err != nil {
		answer(w, http.StatusInternalServerError, map[string]string{"__type": "InternalFailure", "message": err.Error()})
	}
}

// commitLog appends to a file. All callers that arrive during one write and
// sync share the next one.
type commitLog struct {
	file *os.File
	kick chan struct{} // holds a token while the group is not empty
	over chan struct{} // closed when the writer has ended

	mu    sync.Mutex
	group *group // collects the callers of the next commit
}

type group struct {
	buf  []byte
	done chan struct{}
	err  error // set before done is closed
}

func newCommitLog(file *os.File) *commitLog {
	l := &commitLog{
		file:  file,
		kick:  make(chan struct{}, 1),
		over:  make(chan struct{}),
		group: &group{done: make(chan struct{})},
	}
	go l.write()
	return l
}

// commit returns when the bodies are on disk.
func (l *commitLog) commit(bodies ...string) error {
	l.mu.Lock()
	g := l.group
	for _, body := range bodies {
		g.buf = binary.LittleEndian.AppendUint32(g.buf, uint32(len(body)))
		g.buf = append(g.buf, body...)
	}
	l.mu.Unlock()
	select {
	case l.kick <- struct{}{}:
	default:
	}
	<-g.done
	return g.err
}

func (l *commitLog) write() {
	defer close(l.over)
	var spare []byte
	for range l.kick {
		l.mu.Lock()
		g := l.group
		l.group = &group{buf: spare[:0], done: make(chan struct{})}
		l.mu.Unlock()
		if len(g.buf) > 0 {
			if _, g.err = l.file.Write(g.buf); g.err == nil {
				g.err = syncData(l.file)
			}
		}
		spare = g.buf
		close(g.done)
	}
}

// close ends the writer; there must be no commit under way.
func (l *commitLog) close() {
	close(l.kick)
	<-l.over
	_ = l.file.Close()
}
