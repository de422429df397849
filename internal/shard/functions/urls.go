package functions

import (
	"context"
	"fmt"
	"strconv"

	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/clock"
	"godwit.dev/godwit/internal/function"
	"godwit.dev/godwit/internal/shard/kernel"
)

// shardDigits are the digits of an id that name its shard.
const shardDigits = 2

// CreateFunctionURL makes a URL. The first digits of the command's id, of function.URLIDLength
// digits, are replaced. Errors: those of function.State.CreateURL, and InsufficientStorage.
func (e *Functions) CreateFunctionURL(ctx context.Context, cmd function.CreateURL) (u function.QualifiedURL, err error) {
	err = e.WithCatalog(ctx, cmd.Function, func(sh *Shard) (err error) {
		if e.Full() {
			return kernel.ErrFull
		}
		cmd.ID = fmt.Sprintf("%0*x", shardDigits, sh.ID) + cmd.ID[shardDigits:]
		u, err = sh.Functions.CreateURL(clock.Time(sh.Now()), cmd, &sh.Batch)
		return err
	})
	return u, e.EmitCreation(cmd.Function, err)
}

// UpdateFunctionURL changes a URL. Errors: ResourceNotFound.
func (e *Functions) UpdateFunctionURL(ctx context.Context, cmd function.UpdateURL) (u function.QualifiedURL, err error) {
	err = e.WithCatalog(ctx, cmd.Function, func(sh *Shard) (err error) {
		u, err = sh.Functions.UpdateURL(clock.Time(sh.Now()), cmd, &sh.Batch)
		return err
	})
	return u, err
}

// ShowFunctionURL is the URL of a function or an alias. Errors: ResourceNotFound.
func (e *Functions) ShowFunctionURL(ctx context.Context, fn arn.ARN, qualifier string) (u function.QualifiedURL, err error) {
	err = e.ReadCatalog(ctx, fn, func(sh *Shard) (err error) {
		u, err = sh.Functions.ShowURL(fn, qualifier)
		return err
	})
	return u, err
}

// DeleteFunctionURL removes a URL. Errors: ResourceNotFound.
func (e *Functions) DeleteFunctionURL(ctx context.Context, fn arn.ARN, qualifier string) error {
	return e.WithCatalog(ctx, fn, func(sh *Shard) error { return sh.Functions.DeleteURL(fn, qualifier, &sh.Batch) })
}

// FunctionURLs is a page of the URLs of a function and its aliases; see function.State.URLs.
func (e *Functions) FunctionURLs(ctx context.Context, fn arn.ARN, begun bool, after string, limit int) (page []function.QualifiedURL, more bool, err error) {
	err = e.ReadCatalog(ctx, fn, func(sh *Shard) (err error) {
		page, more, err = sh.Functions.URLs(fn, begun, after, limit)
		return err
	})
	return page, more, err
}

// FindFunctionURL finds a URL by its id; ok is false if there is none.
func (e *Functions) FindFunctionURL(id string) (u function.QualifiedURL, ok bool) {
	if len(id) != function.URLIDLength {
		return u, false
	}
	n, err := strconv.ParseUint(id[:shardDigits], 16, 16)
	if err != nil || n >= uint64(len(e.Shards)) {
		return u, false
	}
	sh := e.Shards[n]
	sh.View(func() { u, ok = sh.Functions.FindURL(id) })
	return u, ok
}
