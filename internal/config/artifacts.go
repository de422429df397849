package config

// Artifacts configures the server of templates and code that requests name by bucket and key.
type Artifacts struct {
	Endpoint    string `name:"artifacts-s3-endpoint" placeholder:"URL" help:"The server of S3 that templates by TemplateURL and code of functions are read from: http://HOST:PORT or https://HOST. Without one both are refused."`
	Region      string `name:"artifacts-s3-region" placeholder:"NAME" help:"The region that requests to it are signed for; by default --region."`
	Credentials string `name:"artifacts-s3-credentials" placeholder:"FILE" help:"The access key that requests to it are signed with, and its secret on a second line, readable by its owner only; by default they are not signed."`
	HostStyle   bool   `name:"artifacts-s3-host-style" help:"Name buckets in the host of requests to it, and not in the path."`
}

func (a *Artifacts) check(check checkFunc) {
	if a.Endpoint == "" {
		check(a.Credentials == "", "artifacts-s3-credentials", "want --artifacts-s3-endpoint too")
		return
	}
	_, err := ParseS3Endpoint(a.Endpoint)
	check(err == nil, "artifacts-s3-endpoint", "%v", err)
}
