import { mount } from 'svelte'
import { app } from './page.js' // which tells how tests use an app
import Gate from './page-svelte.svelte'

mount(Gate, { target: app })
