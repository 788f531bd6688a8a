import { mount } from 'svelte'
import Gate from './page-svelte.svelte'
import { app } from './page.js'

mount(Gate, { target: app })
