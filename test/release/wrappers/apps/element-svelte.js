import { mount } from 'svelte'
import Gate from './element-svelte.svelte'
import { app } from './page.js' // which tells how tests use an app

mount(Gate, { target: app })
