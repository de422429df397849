package config

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"regexp"
	"strings"
	"time"
)

// Backup configures the backups of a running server.
type Backup struct {
	To          string        `name:"backup-s3" placeholder:"s3://BUCKET/PREFIX" help:"Keep backups there while the server runs, one after the other, each of what has changed. PREFIX is this server's alone."`
	Endpoint    string        `name:"backup-s3-endpoint" placeholder:"URL" help:"The server of S3 that has the bucket of --backup-s3: http://HOST:PORT or https://HOST."`
	Region      string        `name:"backup-s3-region" placeholder:"NAME" help:"The region that requests to it are signed for; by default --region."`
	Credentials string        `name:"backup-s3-credentials" placeholder:"FILE" help:"The access key that requests to it are signed with, and its secret on a second line, readable by its owner only; by default they are not signed."`
	HostStyle   bool          `name:"backup-s3-host-style" help:"Name the bucket in the host of requests to it, and not in the path."`
	Interval    time.Duration `name:"backup-interval" default:"20s" help:"From the begin of one backup to that of the next: 1s or more (${default})."`
	Retention   time.Duration `name:"backup-retention" default:"7d" help:"How long backups are kept: all of an hour, then one an hour; 0s is for ever (${default})."`
}

// bucketName matches the names that S3 has had for buckets: of today, and of before 2018 with
// capitals, underscores and up to 255 characters.
var bucketName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{1,253}[A-Za-z0-9]$`)

// ParseS3URL parses s3://BUCKET/PREFIX. The prefix may be missing; otherwise it ends in a
// slash.
func ParseS3URL(s string) (bucket, prefix string, err error) {
	u, err := url.Parse(s)
	if err != nil || u.Scheme != "s3" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return "", "", fmt.Errorf("want s3://BUCKET or s3://BUCKET/PREFIX, have %q", s)
	}
	if !bucketName.MatchString(u.Host) || strings.Contains(u.Host, "..") || net.ParseIP(u.Host) != nil {
		return "", "", fmt.Errorf("want s3://BUCKET or s3://BUCKET/PREFIX, and no bucket can be called %q: names have 3 characters or more, letters, digits, dots and hyphens", u.Host)
	}
	if prefix = strings.Trim(u.Path, "/"); prefix != "" {
		prefix += "/"
	}
	return u.Host, prefix, nil
}

func (b *Backup) check(check checkFunc, store StoreKind) {
	if b.To == "" {
		check(b.Endpoint == "" && b.Credentials == "", "backup-s3", "want s3://BUCKET/PREFIX, too")
		return
	}
	_, _, err := ParseS3URL(b.To)
	check(err == nil, "backup-s3", "%v", err)
	_, err = ParseS3Endpoint(b.Endpoint)
	if b.Endpoint == "" {
		err = errors.New("want the server that has the bucket")
	}
	check(err == nil, "backup-s3-endpoint", "%v", err)
	check(store != MemoryStore, "backup-s3", "there is nothing on the disk to back up (--store memory)")
	check(b.Interval >= time.Second, "backup-interval", "want 1s or more, have %s", b.Interval)
	check(b.Retention >= 0, "backup-retention", "want 0s or more, have %s", b.Retention)
}
