"""Redeems powgate tokens. Python 3.8 and newer, standard library only."""
import http.client, json, os, sys, time, urllib.request, uuid

RETRIES, TIMEOUT_SECONDS = 2, 1


class NoVerdict(Exception):
    """No answer, a limit, a wrong key: never a pass. The message says which; it is for your log."""


class EveryAnswer(urllib.request.HTTPErrorProcessor):
    """No status raises, and no redirect is followed: the API key goes to no other address."""

    def http_response(self, request, response):
        return response

    https_response = http_response


def setting(name, start):
    value = os.environ.get(name, "").strip()  # many files of secrets end with a newline
    if not value.startswith(start):
        raise NoVerdict(name + (" does not begin with " + start if value else " is not set"))
    return value


opener = urllib.request.build_opener(EveryAnswer)


def verify(token, ip):
    """None for a token that is good; otherwise a code such as "token-used". Raises NoVerdict."""
    if not isinstance(token, str) or not token:
        return "token-missing"
    if len(token) > 1024:
        return "invalid-body"  # powgate says the same, and of a far longer one nothing
    # The key is new for each call, and the same for its retries: they are one redemption.
    body = json.dumps({"token": token, "expectedIp": ip, "idempotencyKey": str(uuid.uuid4())}).encode()
    headers = {"Authorization": "Bearer " + setting("POWGATE_API_KEY", "sk_"), "Content-Type": "application/json"}
    request = urllib.request.Request(setting("POWGATE_URL", "http").rstrip("/") + "/verify-token", data=body, headers=headers)
    for attempt in range(RETRIES + 1):
        status, answer = send(request)
        if status == 200 and answer.get("success") is True:
            return None
        if status == 400 and "code" in answer:
            return answer["code"]
        if status not in (0, 502, 503, 504):
            break
        if attempt < RETRIES:
            time.sleep(0.1 * 2**attempt)
    if status == 0:
        raise NoVerdict("no answer: %s" % answer.get("error", "it was cut"))
    raise NoVerdict("status %d, %s" % (status, answer.get("code", "which is no verdict")))


def send(request):
    """The status, and the JSON object of the body. If no whole answer came the status is 0."""
    try:
        with opener.open(request, timeout=TIMEOUT_SECONDS) as response:
            status, body = response.status, response.read()
    except (OSError, http.client.HTTPException) as error:
        return 0, {"error": error}
    try:
        answer = json.loads(body)
    except ValueError:
        answer = None
    return status, answer if isinstance(answer, dict) else {}


def words(code):
    """For the person, with the form again, and what they wrote. Without scripts, or too early, forms bring no token."""
    if code != "token-missing":
        return "We could not check that you are a person (%s). Please send the form again." % code
    return "We could not check that you are a person. Please allow JavaScript, wait for the word Verified, and send the form again."


if __name__ == "__main__":
    refusal = verify(sys.argv[1], sys.argv[2])
    print(words(refusal) if refusal else "ok")
