# Redeems powgate tokens. Ruby 3, standard library only.
require 'json'
require 'net/http'
require 'securerandom'

module Powgate
  # No answer, a limit, a wrong key: never a pass. The message says which; it is for your log.
  class NoVerdict < StandardError; end

  def self.setting(name, start)
    value = ENV.fetch(name, '').strip # many files of secrets end with a newline
    return value if value.start_with?(start)

    raise NoVerdict, "#{name} #{value.empty? ? 'is not set' : "does not begin with #{start}"}"
  end

  # nil for a token that is good; otherwise a code such as "token-used". Raises NoVerdict.
  def self.verify(token, ip, retries: 2)
    token = token.to_s.scrub
    return 'token-missing' if token.empty?
    return 'invalid-body' if token.size > 1024 # of which powgate says the same, and of a far longer one nothing

    uri = URI("#{setting('POWGATE_URL', 'http').sub(%r{/+\z}, '')}/verify-token")
    request = Net::HTTP::Post.new(uri, 'Content-Type' => 'application/json',
                                       'Authorization' => "Bearer #{setting('POWGATE_API_KEY', 'sk_')}")
    # The key is new for each call, and the same for its retries: they are one redemption.
    request.body = { token: token, expectedIp: ip, idempotencyKey: SecureRandom.uuid }.to_json
    options = { use_ssl: uri.scheme == 'https', open_timeout: 1, read_timeout: 1, max_retries: 0 }
    status = answer = nil
    (0..retries).each do |attempt|
      status, answer = send_once(uri, request, options)
      return nil if status == 200 && answer['success'] == true
      return answer['code'] if status == 400 && answer['code']
      break unless [0, 502, 503, 504].include?(status)

      sleep 0.1 * 2**attempt if attempt < retries
    end
    raise NoVerdict, "no answer: #{answer['error']}" if status.zero?

    raise NoVerdict, "status #{status}, #{answer['code'] || 'which is no verdict'}"
  end

  def self.send_once(uri, request, options)
    response = Net::HTTP.start(uri.hostname, uri.port, **options) { |http| http.request(request) }
    answer = JSON.parse(response.body.to_s)
    [response.code.to_i, answer.is_a?(Hash) ? answer : {}]
  rescue JSON::ParserError
    [response.code.to_i, {}]
  rescue StandardError => e
    [0, { 'error' => e.message }]
  end

  # For the person, with the form again, and what they wrote. Without scripts, or too early, forms bring no token.
  def self.words(code)
    return "We could not check that you are a person (#{code}). Please send the form again." unless code == 'token-missing'

    'We could not check that you are a person. Please allow JavaScript, wait for the word Verified, and send the form again.'
  end
end

if $PROGRAM_NAME == __FILE__
  code = Powgate.verify(*ARGV)
  puts code ? Powgate.words(code) : 'ok'
end
