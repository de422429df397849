package functions

import (
	"context"
	"fmt"
	"strings"
	"sync"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/authorize"
	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/function"
	"godwit.dev/godwit/internal/function/layer"
	"godwit.dev/godwit/internal/mutation"
	"godwit.dev/godwit/internal/policy"
	"godwit.dev/godwit/internal/shard/kernel"
)

// Layers are in the shards of their own names, with their content beside functions' zips. A version that was
// deleted keeps its content as long as a version of a function has it, in whatever shard that is: layerUses
// counts them. It is derived from the records of functions. Who is about to give a layer to a function
// counts as well, from before it finds the layer until the function has it, so that a deletion cannot come
// in between.

// layerUses counts who has versions of layers.
type layerUses struct {
	mu     sync.Mutex
	counts map[arn.ARN]int
}

// add adds n to a version's count, and reports whether nobody has it any more.
func (u *layerUses) add(version arn.ARN, n int) (unused bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.counts == nil {
		u.counts = map[arn.ARN]int{}
	}
	u.counts[version] += n
	if u.counts[version] > 0 {
		return false
	}
	delete(u.counts, version)
	return true
}

func (u *layerUses) used(version arn.ARN) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.counts[version] > 0
}

// countLayers keeps layerUses for the functions of a shard.
func (sh *Shard) countLayers() {
	sh.Functions.CountLayers(func(version arn.ARN, n int) {
		if sh.module.layerUses.add(version, n) {
			sh.Emit(unusedLayer{sh.module, version})
		}
	})
}

// unusedLayer is a version of a layer that a command has taken from the last function that had it.
type unusedLayer struct {
	e       *Functions
	version arn.ARN
}

// Emit implements kernel.Emitter.
func (u unusedLayer) Emit() { u.e.dropLayer(u.version) }

// dropLayer removes a version that was deleted, with its content, unless somebody has it. Nobody can get it
// any more once it is deleted.
func (e *Functions) dropLayer(version arn.ARN) {
	name, number, _ := version.SplitLayer()
	sh := e.ShardOf(name)
	sh.RunLazy(func() { sh.dropLayer(name, number) })
}

func (sh *Shard) dropLayer(name arn.ARN, number uint64) {
	if sh.module.layerUses.used(name.LayerVersion(number)) {
		return
	}
	if upload := sh.Layers.Drop(name, number, &sh.Batch); upload != 0 {
		sh.dropUploads(upload)
	}
}

// Resume implements kernel.Lifecycle: it removes the versions that a crash has left without a function.
func (l lifecycle) Resume() {
	for _, version := range l.sh.Layers.Deleted() {
		if l.sh.Batch.Size() >= mutation.StepBytes { // the next start removes the rest
			return
		}
		name, number, _ := version.SplitLayer()
		l.sh.dropLayer(name, number)
	}
}

// PublishLayer makes a version of a layer, of a zip. The shard assigns its number. Errors:
// CodeStorageExceeded, InsufficientStorage.
func (e *Functions) PublishLayer(ctx context.Context, cmd layer.Publish, zip []byte) (v layer.Version, err error) {
	again := false
	err = e.ReadCatalog(ctx, cmd.Layer, func(sh *Shard) error {
		if made := sh.Layers.Published(cmd.Layer, cmd.Token); made != nil {
			v, again = *made, true
		}
		return nil
	})
	if err != nil || again {
		return v, err
	}
	_, err = e.withCode(ctx, cmd.Layer, &cmd.Code, zip, func(*Shard) error { return nil }, func(sh *Shard) (FunctionInfo, error) {
		last, err := sh.lastNumber(sh.Layers.NumberKey(cmd.Layer), layer.DecodeNumber)
		if err != nil {
			return FunctionInfo{}, err
		}
		cmd.Last = last
		v = *sh.Layers.Publish(clock.Time(sh.Now()), cmd, &sh.Batch)
		return FunctionInfo{}, nil
	})
	return v, err
}

// DeleteLayer deletes a version of a layer, if it exists; functions that have it keep it.
func (e *Functions) DeleteLayer(ctx context.Context, name arn.ARN, number uint64) error {
	err := e.WithCatalog(ctx, name, func(sh *Shard) error {
		sh.Layers.Delete(name, number, &sh.Batch)
		return nil
	})
	if err == nil {
		e.dropLayer(name.LayerVersion(number))
	}
	return err
}

// Layer finds a version of a layer. Errors: ResourceNotFound.
func (e *Functions) Layer(ctx context.Context, name arn.ARN, number uint64) (v layer.Version, err error) {
	err = e.ReadCatalog(ctx, name, func(sh *Shard) error {
		found, err := sh.Layers.Version(name, number)
		if err == nil {
			v = *found
		}
		return err
	})
	return v, err
}

// UseLayers finds versions of layers for a function. They keep their content until release is called,
// whatever becomes of them meanwhile. Errors: ErrLayerNotFound.
func (e *Functions) UseLayers(ctx context.Context, versions []arn.ARN) (all []function.Layer, release func(), err error) {
	held := 0
	release = func() {
		for _, version := range versions[:held] {
			if e.layerUses.add(version, -1) {
				e.dropLayer(version)
			}
		}
	}
	for _, version := range versions {
		e.layerUses.add(version, +1)
		held++
		name, number, _ := version.SplitLayer()
		v, err := e.Layer(ctx, name, number)
		if fault.KindOf(err) == fault.ResourceNotFound {
			err = ErrLayerNotFound.With(version)
		}
		if err != nil {
			release()
			return nil, nil, err
		}
		all = append(all, function.Layer{ARN: version, Upload: v.Code.Upload, SHA256: v.Code.SHA256[:], Size: v.Code.Size, Unzipped: v.Code.Unzipped})
	}
	return all, release, nil
}

// LayerContent reads the zip of a function's layer. Errors: ResourceNotFound if no version of a function has
// it any more.
func (e *Functions) LayerContent(ctx context.Context, l function.Layer) ([]byte, error) {
	name, _, ok := l.ARN.SplitLayer()
	if !ok {
		return nil, fmt.Errorf("a layer named %s", l.ARN)
	}
	return e.code(ctx, e.ShardOf(name), function.Code{Upload: l.Upload, Size: l.Size})
}

// LayerUpload reads the zip of a version of a layer by its ARN. Errors: ResourceNotFound if it was deleted.
func (e *Functions) LayerUpload(ctx context.Context, version arn.ARN) ([]byte, error) {
	name, number, ok := version.SplitLayer()
	if !ok {
		return nil, ErrNoCode
	}
	v, err := e.Layer(ctx, name, number)
	if err != nil {
		return nil, ErrNoCode
	}
	return e.code(ctx, e.ShardOf(name), v.Code)
}

// LayerListed is a version of a layer in a list.
type LayerListed struct {
	Layer   arn.ARN
	Version layer.Version
}

// ListLayers lists an account's layers in a region by name, up to limit of them after the name after, each
// with its newest version that the filter lets through.
func (e *Functions) ListLayers(ctx context.Context, region, account, after string, f layer.Filter, limit int) ([]LayerListed, bool, error) {
	compare := func(a, b LayerListed) int { return strings.Compare(a.Layer.Resource, b.Layer.Resource) }
	return kernel.MergePages(ctx, &e.Shards, limit, compare, func(sh *Shard) ([]LayerListed, bool) {
		page, more := sh.Layers.Layers(account, region, after, f, limit)
		all := make([]LayerListed, len(page))
		for i, l := range page {
			all[i] = LayerListed{l.Layer, *l.Version}
		}
		return all, more
	})
}

// ListLayerVersions lists the versions of a layer, the newest first: up to limit below the number before; 0:
// from the newest on.
func (e *Functions) ListLayerVersions(ctx context.Context, name arn.ARN, before uint64, f layer.Filter, limit int) (all []layer.Version, more bool, err error) {
	err = e.ReadCatalog(ctx, name, func(sh *Shard) error {
		var page []*layer.Version
		page, more = sh.Layers.Versions(name, before, f, limit)
		for _, v := range page {
			all = append(all, *v)
		}
		return nil
	})
	return all, more, err
}

// PermitLayer adds a statement to the policy of a version of a layer. Errors: those of layer.State.Permit, and
// InvalidParameter for a statement that no policy can have.
func (e *Functions) PermitLayer(ctx context.Context, cmd layer.Permit) error {
	doc := `{"Version":"2012-10-17","Statement":[` + cmd.Permission.String() + `]}`
	if _, err := policy.Parse(doc); err != nil {
		return ErrPrincipal
	}
	return e.WithCatalog(ctx, cmd.Layer, func(sh *Shard) error { return sh.Layers.Permit(cmd, &sh.Batch) })
}

// ForbidLayer removes a statement from the policy of a version of a layer. Errors: those of
// layer.State.Forbid.
func (e *Functions) ForbidLayer(ctx context.Context, cmd layer.Forbid) error {
	return e.WithCatalog(ctx, cmd.Layer, func(sh *Shard) error { return sh.Layers.Forbid(cmd, &sh.Batch) })
}

// LayerPolicy is the policy of a version of a layer, with its revision. Errors: ResourceNotFound, also if
// there is no policy.
func (e *Functions) LayerPolicy(ctx context.Context, name arn.ARN, number uint64) (doc, revision string, err error) {
	err = e.ReadCatalog(ctx, name, func(sh *Shard) (err error) {
		doc, revision, err = sh.Layers.ShowPolicy(name, number)
		return err
	})
	return doc, revision, err
}

// CompiledLayerPolicy is the policy of the version of a layer that an ARN names; nil if there is none. It is
// asked when a layer is read or given to a function, which is rare, and so is not kept.
func (e *Functions) CompiledLayerPolicy(ctx context.Context, version arn.ARN) *policy.Policy {
	name, number, ok := version.SplitLayer()
	if !ok || number == 0 {
		return nil
	}
	doc, _, err := e.LayerPolicy(ctx, name, number)
	if err != nil {
		return nil
	}
	p, err := policy.Parse(doc)
	if err != nil {
		return nil
	}
	return p
}

// AdmitsReader reports whether the policy of a version of a layer gives another account permission to read it.
// address is the caller's, as host:port. The result is false if there is no such version.
func (e *Functions) AdmitsReader(ctx context.Context, version arn.ARN, account, address string) bool {
	p := e.CompiledLayerPolicy(ctx, version)
	if p == nil {
		return false
	}
	name, _, _ := version.SplitLayer()
	who, now := authorize.RootOf(account), int64(0)
	sh := e.ShardOf(name)
	sh.View(func() { now = sh.Now() })
	result := policy.Decide(&policy.Request{
		Caller: who, Action: "lambda:GetLayerVersion", Resource: version.String(), Owner: name.Account,
		Context: &authorize.Context{Caller: who, Account: name.Account, Region: name.Region, Now: now, Address: address},
	}, &policy.Policies{Resource: p})
	return result.Allowed()
}
