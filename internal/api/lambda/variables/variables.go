// Package variables encrypts the environment variables of functions with a customer key, and
// decrypts them for callers with the permission.
package variables

import (
	"bytes"
	"maps"

	"godwit.dev/godwit/internal/api"
	"godwit.dev/godwit/internal/api/refusal"
	"godwit.dev/godwit/internal/arn"
	"godwit.dev/godwit/internal/fault"
	"godwit.dev/godwit/internal/function"
	"godwit.dev/godwit/internal/shard/keys"
)

// Keys encrypts and decrypts variables; *keys.Environments implements it.
type Keys interface {
	Seal(as keys.Access, fn arn.ARN, key string, variables map[string]string) ([]byte, error)
	Open(as keys.Access, fn arn.ARN, sealed []byte) (map[string]string, error)
	Admit(as keys.Access, fn arn.ARN, key, role string) (undo func(), err error)
	Release(fn arn.ARN, uses []keys.Use)
}

// Failure replaces the variables in an answer if they could not be decrypted for the caller.
type Failure struct{ ErrorCode, Message string }

// as is the caller's access to a key.
func as(call *api.Call) keys.Access {
	return keys.Access{Caller: call.Caller, Address: call.RemoteAddr, Transport: call.Transport()}
}

// Encrypt encrypts the variables of a configuration with a key, and grants its role to
// decrypt them. undo revokes the grant. Errors: InvalidParameter.
func Encrypt(k Keys, call *api.Call, fn arn.ARN, config *function.Config) (undo func(), err error) {
	if config.KMSKey == "" || len(config.Environment) == 0 && config.Cipher == nil {
		return func() {}, nil
	}
	if len(config.Environment) > 0 {
		sealed, err := k.Seal(as(call), fn, config.KMSKey, config.Environment)
		if err != nil {
			return nil, refused("encrypt", err)
		}
		config.Cipher, config.Environment = sealed, nil
	}
	if undo, err = k.Admit(as(call), fn, config.KMSKey, config.Role); err != nil {
		return nil, refused("configure access to", err)
	}
	return undo, nil
}

// Update is an update of a function's configuration.
type Update struct {
	Before, After function.Config // both with the key of before
	Replaced      bool            // After has the request's variables
	Key           *string         // the request's; nil: it has none
}

// Change encrypts a function's variables for an update. put sets the result in the configuration,
// unless its variables have changed in the meantime. Errors: InvalidParameter.
func Change(k Keys, call *api.Call, fn arn.ARN, u Update) (put func(*function.Config) error, undo func(), err error) {
	before, after := &u.Before, u.After
	if u.Replaced {
		after.Cipher = nil
	}
	if u.Key != nil && *u.Key != before.KMSKey {
		after.KMSKey = *u.Key
		if after.Cipher != nil {
			if after.Environment, err = k.Open(as(call), fn, after.Cipher); err != nil {
				return nil, nil, refused("decrypt", err)
			}
			after.Cipher = nil
		}
	}
	if undo, err = Encrypt(k, call, fn, &after); err != nil {
		return nil, nil, err
	}
	return func(config *function.Config) error {
		if config.KMSKey != before.KMSKey || !bytes.Equal(config.Cipher, before.Cipher) || !maps.Equal(config.Environment, before.Environment) {
			return fault.Newf(fault.ResourceConflict, "The operation cannot be performed at this time. An update is in progress for resource: %s", fn)
		}
		config.KMSKey, config.Cipher, config.Environment = after.KMSKey, after.Cipher, after.Environment
		return nil
	}, undo, nil
}

// Show decrypts variables for a caller; the Failure says why it could not.
func Show(k Keys, call *api.Call, fn arn.ARN, sealed []byte) (map[string]string, *Failure) {
	all, err := k.Open(as(call), fn, sealed)
	if err == nil {
		return all, nil
	}
	f := &Failure{ErrorCode: exceptions[fault.KindOf(err)]}
	if f.ErrorCode == "" {
		f.ErrorCode = "KMSInternalException"
	}
	f.Message = sentence("decrypt your", "the KMS", "your KMS permissions", "your KMS key settings", err, " ")
	return nil, f
}

// Unreadable is AWS's error for running a function whose role cannot decrypt its variables.
func Unreadable(err error) error {
	kind := fault.KindOf(err)
	if exceptions[kind] == "" {
		return err
	}
	const settings = "the function's KMS key settings"
	return fault.New(kind, sentence("decrypt the", "KMS", settings, settings, err, ""))
}

// exceptions are the names of KMS's errors.
var exceptions = map[fault.Kind]string{
	fault.KMSAccessDenied: "AccessDeniedException", fault.KMSDisabled: "DisabledException", fault.KMSInvalidState: "KMSInvalidStateException",
	fault.KMSInvalidKeyUsage: "InvalidKeyUsageException", fault.KMSNotFound: "NotFoundException", fault.InvalidARN: "InvalidArnException",
}

// sentence is the message for an error of KMS. For a denial it is AWS's; for other kinds it
// has the same form.
func sentence(what, access, permissions, settings string, err error, between string) string {
	kind := fault.KindOf(err)
	why, look := access+" access was denied", permissions
	switch kind {
	case fault.KMSDisabled:
		why, look = "the KMS key used is disabled", settings
	case fault.KMSInvalidState, fault.KMSInvalidKeyUsage:
		why, look = "the state of the KMS key used is not valid for Decrypt", settings
	case fault.KMSNotFound:
		why, look = "the KMS key was not found", settings
	default:
	}
	return "Lambda was unable to " + what + " environment variables because " + why + ". Please check " + look +
		". KMS Exception: " + exceptions[kind] + between + "KMS Message: " + refusal.Text(err)
}

// refused is the error for a key that the caller cannot use for a function.
func refused(what string, err error) error {
	kind := fault.KindOf(err)
	if exceptions[kind] == "" {
		return err
	}
	switch {
	case what == "decrypt" || what == "encrypt" && kind == fault.KMSAccessDenied:
		return fault.New(fault.InvalidParameter, sentence(what+" your", "the KMS", "your KMS permissions", "your KMS key settings", err, " "))
	default:
		return fault.New(fault.InvalidParameter, "Lambda was unable to configure access to your environment variables because the KMS key is invalid for CreateGrant. "+
			"Please check your KMS key settings. KMS Exception: "+exceptions[kind]+" KMS Message: "+refusal.Text(err))
	}
}
