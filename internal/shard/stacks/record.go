package stacks

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"

	"godwit.dev/godwit/internal/keyspace"
	"godwit.dev/godwit/internal/seal"
	"godwit.dev/godwit/internal/stack"
)

const (
	version = 1

	inClear byte = 0
	sealed  byte = 1
)

var errRecord = errors.New("stacks: a record cannot be read")

func key(tag byte, id stackID, rest ...byte) []byte {
	return append(append([]byte{keyspace.StackSpace, tag}, id[:]...), rest...)
}

func numbered(tag byte, id stackID, n uint64) []byte {
	return binary.BigEndian.AppendUint64(key(tag, id), n)
}

// put writes a record.
func (m *Module) put(k []byte, v any) {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err) // the types of records can always be encoded
	}
	value := []byte{version, inClear}
	if m.sealer == nil {
		value = append(value, text...)
	} else if value, err = m.sealer.AppendSealed([]byte{version, sealed}, text, k); err != nil {
		panic(err) // sealing fails only with an invalid key
	}
	m.shard.Batch.Set(k, value)
}

// open reads a record.
func (m *Module) open(k, value []byte, into any) error {
	if len(value) < 2 || value[0] != version || value[1] > sealed {
		return errRecord
	}
	text := value[2:]
	if value[1] == sealed {
		if m.sealer == nil {
			return seal.ErrSealed
		}
		var err error
		if text, err = m.sealer.Open(text, k); err != nil {
			return err
		}
	}
	return decode(text, into)
}

// decode reads JSON and leaves numbers as they are written.
func decode(text []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	return d.Decode(into)
}

// CheckRecord reports whether the value of a record can be read, except for sealed values.
func CheckRecord(kind keyspace.ID, value []byte) error {
	if len(value) < 2 || value[0] != version || value[1] > sealed {
		return errRecord
	}
	if value[1] == sealed {
		return nil
	}
	var into any
	switch kind {
	case keyspace.KindStack:
		into = &stack.Stack{}
	case keyspace.KindStackResource:
		into = &stack.Resource{}
	case keyspace.KindStackEvent:
		into = &stack.Event{}
	case keyspace.KindChangeSet:
		into = &ChangeSet{}
	default:
		into = &body{}
	}
	return decode(value[2:], into)
}

// body is a template's text.
type body struct {
	Text string `json:"text"`
}

// template reads the text of a template.
func (m *Module) template(id stackID, number uint64) ([]byte, error) {
	k := numbered(keyspace.StackTemplates, id, number)
	value, ok, err := m.shard.Stream.Reader().Get(nil, k)
	if err == nil && !ok {
		err = errRecord
	}
	if err != nil {
		return nil, err
	}
	var b body
	err = m.open(k, value, &b)
	return []byte(b.Text), err
}

// keep stores the text of a template, and returns its number.
func (m *Module) keep(e *entry, text []byte) uint64 {
	for e.First++; e.First <= e.Templates && !e.uses(e.First); e.First++ {
		m.shard.Batch.Delete(numbered(keyspace.StackTemplates, e.id, e.First))
	}
	e.First--
	e.Templates++
	m.put(numbered(keyspace.StackTemplates, e.id, e.Templates), body{string(text)})
	return e.Templates
}

// uses reports that a stack, or one of its change sets, has a template.
func (e *entry) uses(number uint64) bool {
	for _, c := range e.changes {
		if c.Input.Template == number {
			return true
		}
	}
	return e.Input.Template == number || e.Former != nil && e.Former.Template == number
}

// save writes the changes of a stack's commands, and returns the steps that follow.
func (m *Module) save(e *entry) []stack.Step {
	c := e.Take()
	for i := range c.Steps {
		if s := &c.Steps[i]; !s.Again {
			m.steps++
			s.Order, e.Resources[s.Logical].Next.Order = m.steps, m.steps
		}
	}
	for _, id := range c.Touched {
		k := key(keyspace.StackResources, e.id, []byte(id)...)
		if r := e.Resources[id]; r != nil {
			m.storing(e, r)
			m.put(k, r)
		} else {
			m.shard.Batch.Delete(k)
		}
	}
	for i := range c.Events {
		m.put(numbered(keyspace.StackEvents, e.id, c.Events[i].Number), &c.Events[i])
	}
	m.put(key(keyspace.StackRecords, e.id), &e.Stack)
	if e.Status == stack.DeleteComplete && m.byName[e.stackName()] == e {
		delete(m.byName, e.stackName())
	}
	if !e.Status.Busy() {
		for _, ended := range m.ending[e.id] {
			close(ended)
		}
		delete(m.ending, e.id)
	}
	return c.Steps
}
