package config_test

import (
	"strings"
	"testing"

	"godwit.dev/godwit/internal/config"
)

// A name that no bucket can have is refused at the start, and not by each backup.
func TestParseS3URL(t *testing.T) {
	for text, want := range map[string]string{
		"s3://backups": "backups ", "s3://a.b-c": "a.b-c ", "s3://backups/godwit/": "backups godwit/", "s3://Old_Bucket/a/b": "Old_Bucket a/b/",
		"s3://ab": "", "s3://-abc": "", "s3://abc.": "", "s3://a..b": "", "s3://192.168.0.1": "", "s3://a~bc": "", "s3://abc:80/x": "", "s3://b%20c": "",
		"s3://" + strings.Repeat("x", 256): "", "s3://": "", "https://backups": "",
	} {
		bucket, prefix, err := config.ParseS3URL(text)
		if got := bucket + " " + prefix; (err != nil) != (want == "") || err == nil && got != want {
			t.Errorf("%s: %q, %v", text, got, err)
		}
	}
}
