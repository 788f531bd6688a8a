/** The dashboard's HTML before its script has run: the frame, and a text for browsers without script. */

export const PAGE = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>powgate dashboard</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="dashboard/app.css">
<script src="dashboard/app.js" type="module"></script>
</head>
<body>
<a class="skip" href="#plots">Skip to the plots</a>
<header>
  <h1>powgate <span id="place"></span></h1>
  <p id="freshness">Waiting for the first numbers</p>
  <div class="controls">
    <fieldset>
      <legend>Range</legend>
      <label><input type="radio" name="range" value="30m" checked><span>30 min</span></label>
      <label><input type="radio" name="range" value="24h"><span>24 h</span></label>
    </fieldset>
    <label class="choice">Site <select id="site"><option value="">All sites</option></select></label>
    <label class="choice">Theme <select id="theme">
      <option value="">System</option><option value="light">Light</option><option value="dark">Dark</option>
    </select></label>
  </div>
</header>
<main>
<div id="problems" role="status"></div>
<noscript><p class="problem bad">This page draws its plots by a script. Numbers without one: <a href="metrics">metrics</a>,
<a href="dashboard/data.json">data.json</a>.</p></noscript>
<div class="layout">
<section id="tiles" aria-label="Now"></section>
<div id="plots" tabindex="-1"></div>
</div>
</main>
<footer>
  <p>Counted since <span id="since">the start</span>, in memory: a restart of powgate begins anew. For what must be kept:
  <a href="metrics">Prometheus metrics</a> and a <a href="grafana.json" download="powgate-grafana.json">dashboard for
  Grafana</a>.</p>
</footer>
</body>
</html>
`
