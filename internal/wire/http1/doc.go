// Package http1 serves plain HTTP/1.1 requests over TCP at a fraction of what
// net/http spends on one, and leaves all others to net/http.
//
// A request is plain if it is a POST with a Content-Length, or without a body,
// and nothing else in its head is out of the ordinary: that is how the SDKs
// ask. It is parsed in one pass over one buffer, answered with one write, and
// watched for a caller that hangs up only while somebody waits for that.
// Whatever is not certain to be plain (another method or version, a chunked
// body, Expect, Upgrade, a folded header, two lengths, a byte that does not
// belong) is not judged here: the connection goes to net/http with the bytes
// that were read, and stays there. So do connections over TLS. What net/http is given
// is looked at for requests of two lengths on the way, which it would not refuse.
//
// Times follow the system's clock: they bound what a peer may take.
package http1
