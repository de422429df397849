package process

import "godwit.dev/godwit/internal/fault"

// The errors of a function's code, runtime or isolation.
var (
	ErrRuntime      = fault.NewRule(fault.InvalidRuntime, "process: the runtime is unknown")       // its name
	ErrNotInstalled = fault.NewRule(fault.InvalidRuntime, "process: the runtime is not installed") // its name, its programs
	ErrPlatform     = fault.NewRule(fault.InvalidRuntime, "process: zips do not run here")         // the operating system
	ErrIsolation    = fault.NewRule(fault.InvalidRuntime, "process: functions cannot be isolated") // why, and the setting that disables isolation
	ErrZip          = fault.NewRule(fault.InvalidZipFile, "process: the zip cannot be unpacked")
	ErrUnzippedSize = fault.NewRule(fault.InvalidZipFile, "process: the zip's content is too large") // the bound, in bytes
	ErrClosed       = fault.NewRule(fault.Unavailable, "process: the environment is closed")
)
