package shard

import (
	"cmp"
	"context"
	"encoding/binary"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/function"
	"godwit.dev/godwit/internal/keyspace"
	"godwit.dev/godwit/internal/mutation"
)

// A function's zip is kept in chunks, under a name that no other upload to its
// shard has ever had. The chunks are durable before the commit that makes a
// version of them. What a crash or a refusal leaves without a version goes: at
// once, or when the shard is loaded.

const (
	codeChunk = 64 << 10 // the size of a chunk, in bytes: little to read for who only passes by
	codeStep  = 16       // chunks in one commit
)

func codePrefix(shard uint16) []byte {
	return []byte{keyspace.CodeSpace, byte(shard >> 8), byte(shard)}
}

func uploadPrefix(shard uint16, upload uint64) []byte {
	return binary.BigEndian.AppendUint64(codePrefix(shard), upload)
}

// upload makes a zip durable and returns its name.
func (e *functionEngine) upload(sh *functionShard, zip []byte) uint64 {
	var name uint64
	sh.view(func() {
		sh.meta.Incarnation++
		name = sh.meta.Incarnation
	})
	prefix := uploadPrefix(sh.id, name)
	for i := uint32(0); len(zip) > 0; {
		// Durable one after the other, so that the memory of commits under way stays small.
		_ = sh.runDurable(func(*Tx) error {
			for range codeStep {
				n := min(len(zip), codeChunk)
				sh.batch.Set(binary.BigEndian.AppendUint32(prefix, i), zip[:n])
				zip = zip[n:]
				if i++; len(zip) == 0 {
					break
				}
			}
			return nil
		})
	}
	return name
}

// dropUploads removes zips, as part of the command under way.
func (sh *functionShard) dropUploads(names ...uint64) {
	for _, name := range names {
		all := keyspace.Prefix(uploadPrefix(sh.id, name))
		sh.batch.DeleteRange(all.Lower, all.Upper)
	}
}

// FunctionCode reads the zip that a target runs. Errors: ResourceNotFound if the
// version it was resolved from is gone, whose function should be resolved anew.
func (e *functionEngine) FunctionCode(ctx context.Context, t function.Target) ([]byte, error) {
	return e.code(ctx, e.shardOf(t.Function), t.Code)
}

func (e *functionEngine) code(ctx context.Context, sh *functionShard, c function.Code) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	sh.view(sh.readable)
	zip := make([]byte, 0, c.Size)
	err := each(e.store, keyspace.Prefix(uploadPrefix(sh.id, c.Upload)), func(_, value []byte) bool {
		zip = append(zip, value...)
		return true
	})
	if err != nil {
		return nil, err
	}
	if int64(len(zip)) != c.Size || c.Upload == 0 {
		return nil, errNoCode
	}
	return zip, nil
}

// loadFunctions reads the catalog of functions, and removes code that no version
// has.
func (sh *functionShard) loadFunctions() error {
	for _, prefix := range function.Prefixes(sh.id) {
		var failed error
		err := each(sh.engine.store, keyspace.Prefix(prefix), func(key, value []byte) bool {
			failed = sh.functions.Load(key, value)
			return failed == nil
		})
		if err := cmp.Or(failed, err); err != nil {
			return err
		}
	}
	for _, f := range sh.functions.Reserving() {
		sh.engine.reserve(f.ARN, *f.Reserved)
	}
	used := sh.functions.Uploads()
	span := keyspace.Prefix(codePrefix(sh.id))
	it, err := sh.engine.store.Iter(span.Lower, span.Upper)
	if err != nil {
		return err
	}
	// One step for each upload, however many chunks it has.
	for ok := it.Next(); ok; {
		name := binary.BigEndian.Uint64(it.Key()[len(codePrefix(sh.id)):])
		if !used[name] && sh.batch.Size() < mutation.StepBytes { // else the next start does
			sh.dropUploads(name)
		}
		ok = it.Seek(uploadPrefix(sh.id, name+1))
	}
	return it.Close()
}

// FunctionUpload reads the zip of a function by its name. Errors: ResourceNotFound
// if no version of the function has it.
func (e *functionEngine) FunctionUpload(ctx context.Context, fn arn.ARN, upload uint64) (zip []byte, err error) {
	var c function.Code
	err = e.withCatalog(ctx, fn, func(sh *functionShard) error {
		f, ok := sh.functions.Function(fn)
		if !ok {
			return errNoCode
		}
		c, ok = f.Code(upload)
		if !ok {
			return errNoCode
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return e.code(ctx, e.shardOf(fn), c)
}

var errNoCode = fault.New(fault.ResourceNotFound, "The function's code is not there any more.")
