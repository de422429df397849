package audit

import "os"

// SetSync has a file synced by something else. It is called before the first line.
func SetSync(f *File, sync func(*os.File) error) { f.sync = sync }
