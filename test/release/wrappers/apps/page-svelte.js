import { mount } from 'svelte'
import { app } from './page.js'
import Gate from './page-svelte.svelte'

mount(Gate, { target: app })
