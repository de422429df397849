package config

import (
	"cmp"
	"errors"
	"net/url"
	"path/filepath"
	"strings"
)

// ParseS3Endpoint parses the URL of an S3 server.
func ParseS3Endpoint(s string) (*url.URL, error) {
	u, err := url.Parse(s)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "" {
		return nil, errors.New("want http://HOST[:PORT] or https://HOST[:PORT]")
	}
	if u.User != nil {
		return nil, errors.New("credentials belong into a file: others on the machine can read flags")
	}
	return u, nil
}

func (c *Config) checkFirehose(check checkFunc) {
	if c.FirehoseS3Endpoint != "" {
		_, err := ParseS3Endpoint(c.FirehoseS3Endpoint)
		check(err == nil, "firehose-s3-endpoint", "%v", err)
		check(c.FirehoseDirectory == "", "firehose-directory", "objects go there or to --firehose-s3-endpoint, not both")
	}
	check(c.FirehoseS3Endpoint != "" || c.FirehoseS3Credentials == "", "firehose-s3-credentials", "want --firehose-s3-endpoint too")
	check(c.FirehoseMaxStreams >= 0, "firehose-max-streams", "want 0 or more, have %d", c.FirehoseMaxStreams)
	const least = 8 << 20
	check(c.FirehoseMaxBuffer == 0 || c.FirehoseMaxBuffer >= least, "firehose-max-buffer", "want 8MiB or more, have %d bytes", c.FirehoseMaxBuffer)
}

// DevFiles is the directory in which development keeps messages and objects that leave the server,
// in directories outbox and firehose: whichever node sends them, all find them there.
func (c *Config) DevFiles() string { return cmp.Or(c.Shared, c.Data) }

// FirehoseFiles is the directory with the objects of delivery streams; empty: there is none.
func (c *Config) FirehoseFiles() string {
	switch {
	case c.FirehoseS3Endpoint != "":
		return ""
	case c.FirehoseDirectory == "" && !c.Production && c.Store != MemoryStore:
		return filepath.Join(c.DevFiles(), "firehose")
	}
	return c.FirehoseDirectory
}
