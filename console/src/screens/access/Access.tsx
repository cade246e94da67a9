/** The screens before sign-in; the routes load them from here. */

export { Forgotten } from './Forgotten'
export { SignIn } from './SignIn'
export { SignUp } from './SignUp'
