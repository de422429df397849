package functions

import (
	"context"
	"encoding/binary"
	"errors"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/function"
	"godwit.dev/godwit/internal/function/layer"
	"godwit.dev/godwit/internal/keyspace"
	"godwit.dev/godwit/internal/mutation"
	"godwit.dev/godwit/internal/shard/kernel"
	"godwit.dev/godwit/internal/store"
)

// The zip of a function or a layer is stored in chunks, under a name that is unique to the upload within its
// shard. The chunks are durable before the commit that makes a version of them. Chunks that a
// crash or a refusal leaves without a version are removed at once, or when the shard is loaded.

const (
	// CodeChunk is the size of a chunk, in bytes: small, so that an iterator that skips chunks
	// reads little.
	CodeChunk = 64 << 10
	// codeStep is how many chunks one commit has.
	codeStep = 16
)

// codePrefix begins the keys of a shard's code.
func codePrefix(shard uint16) []byte {
	return []byte{keyspace.CodeSpace, byte(shard >> 8), byte(shard)}
}

func uploadPrefix(shard uint16, upload uint64) []byte {
	return binary.BigEndian.AppendUint64(codePrefix(shard), upload)
}

// upload makes a zip durable and returns its name.
func (e *Functions) upload(sh *Shard, zip []byte) uint64 {
	var name uint64
	sh.RunLazy(func() {
		name = sh.NextIncarnation()
	})
	prefix := uploadPrefix(sh.ID, name)
	for i := uint32(0); len(zip) > 0; {
		// Each commit is durable before the next, so that commits in progress take little
		// memory.
		_ = sh.RunDurable(func(*kernel.Tx) error {
			for range codeStep {
				n := min(len(zip), CodeChunk)
				sh.Batch.Set(binary.BigEndian.AppendUint32(prefix, i), zip[:n])
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

// dropUploads removes zips, as part of the current command.
func (sh *Shard) dropUploads(names ...uint64) {
	for _, name := range names {
		all := keyspace.Prefix(uploadPrefix(sh.ID, name))
		sh.Batch.DeleteRange(all.Lower, all.Upper)
	}
}

// FunctionCode reads the zip of a target. Errors: ResourceNotFound if the version of the target
// was deleted; the function should be resolved again.
func (e *Functions) FunctionCode(ctx context.Context, t function.Target) ([]byte, error) {
	return e.code(ctx, e.ShardOf(t.Function), t.Code)
}

func (e *Functions) code(ctx context.Context, sh *Shard, c function.Code) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	sh.View(sh.FlushAppended)
	zip := make([]byte, 0, c.Size)
	err := store.Each(e.Store, keyspace.Prefix(uploadPrefix(sh.ID, c.Upload)), func(_, value []byte) error {
		zip = append(zip, value...)
		return nil
	})
	if err != nil {
		return nil, err
	}
	if int64(len(zip)) != c.Size || c.Upload == 0 {
		return nil, ErrNoCode
	}
	return zip, nil
}

// loadFunctions reads the catalog of functions and layers, and removes code without a version.
func (sh *Shard) loadFunctions() error {
	for _, prefix := range function.Prefixes(sh.ID) {
		if err := store.Each(sh.module.Store, keyspace.Prefix(prefix), sh.Functions.Load); err != nil {
			return err
		}
	}
	for _, f := range sh.Functions.Reserving() {
		sh.module.reserve(f.ARN, *f.Reserved)
	}
	if err := store.Each(sh.module.Store, keyspace.Prefix(layer.Prefix(sh.ID)), sh.Layers.Load); err != nil {
		return err
	}
	used := sh.Functions.Uploads()
	sh.Layers.Uploads(func(upload uint64) { used[upload] = true })
	span := keyspace.Prefix(codePrefix(sh.ID))
	it, err := sh.module.Store.Iter(span.Lower, span.Upper)
	if err != nil {
		return err
	}
	// One step for each upload, however many chunks it has.
	for ok := it.Next(); ok; {
		k, err := keyspace.ParseAs(keyspace.KindCode, it.Key())
		if err != nil {
			return errors.Join(err, it.Close())
		}
		name, _ := k.Number(keyspace.PartUpload)
		if !used[name] && sh.Batch.Size() < mutation.StepBytes { // else the next start removes it
			sh.dropUploads(name)
		}
		ok = it.Seek(uploadPrefix(sh.ID, name+1))
	}
	return it.Close()
}

// FunctionUpload reads the zip of a function by its name. Errors: ResourceNotFound
// if no version of the function has it.
func (e *Functions) FunctionUpload(ctx context.Context, fn arn.ARN, upload uint64) (zip []byte, err error) {
	var c function.Code
	err = e.ReadCatalog(ctx, fn, func(sh *Shard) error {
		f, ok := sh.Functions.Function(fn)
		if !ok {
			return ErrNoCode
		}
		c, ok = f.Code(upload)
		if !ok {
			return ErrNoCode
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return e.code(ctx, e.ShardOf(fn), c)
}
